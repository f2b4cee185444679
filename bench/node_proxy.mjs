// The reverse proxy many would write: npm `http-proxy`, keep-alive to the upstream.
// node node_proxy.mjs LISTEN_PORT UPSTREAM_PORT; runs beside a node_modules with http-proxy in it.
import http from "node:http";
import httpProxy from "http-proxy";

const [listen, upstream] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true });
const proxy = httpProxy.createProxyServer({ target: `http://127.0.0.1:${upstream}`, agent });
proxy.on("error", (error, request, response) => {
  if (response.writeHead && !response.headersSent) response.writeHead(502);
  response.end(String(error));
});
const server = http.createServer((request, response) => proxy.web(request, response));
server.keepAliveTimeout = 600_000;
server.listen(listen, "127.0.0.1", 1024);

"""A resolver that answers from a script and remembers what it was asked."""

from collections.abc import Sequence


class ScriptedResolver:
    """The n-th look-up of a name gives its n-th answer (the last one for ever)."""

    def __init__(self, **answers: Sequence[Sequence[str] | Exception]) -> None:
        self._answers = {name.replace("_", "."): list(script) for name, script in answers.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        del port
        script = self._answers.get(host)
        self.asked.append(host)
        if script is None:
            raise OSError(f"no such name: {host}")
        answer = script[min(self.asked.count(host), len(script)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

"""What a task asks its cluster for."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Resources:
    """What one task asks for. seconds: its time limit."""

    cpus: int
    memory_mib: int
    seconds: int

    @property
    def clock(self) -> str:
        """The limit as Slurm takes it.

        >>> Resources(1, 1, 93_600).clock
        '26:00:00'
        """
        return f"{self.seconds // 3600:02}:{self.seconds // 60 % 60:02}:{self.seconds % 60:02}"

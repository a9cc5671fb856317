"""`refinery cluster`: a run on many machines, as jobs of Slurm or Kubernetes."""

from refinery.pipelines.shell.command import Command, Section

COMMAND = Command(
    name="cluster",
    summary="run a recipe on many machines, as job arrays of Slurm or Kubernetes",
    section=Section.MAKE,
)

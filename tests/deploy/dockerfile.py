"""A Dockerfile, parsed into stages and executed in scratch folders instead of images.

It knows what the Dockerfile of this project uses. The base image is the /usr of this machine, read-only.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

COPIED = (
    *("passwd", "group", "shadow", "gshadow", "login.defs", "nsswitch.conf", "hosts", "resolv.conf", "ld.so.cache"),
    *("ssl", "pip.conf", "python3.11", "python3.13", "alternatives"),
)
"""What the base image has in /etc."""
DOWNLOADS = (
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_CERT",
    "PIP_DEFAULT_TIMEOUT",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
)
"""Variables with which pip reaches its index on this machine."""
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Stage:
    """The instructions of a stage after FROM, in order."""

    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Image:
    """A root folder, and the configuration of its containers."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": SYSTEM_PATH})
    arguments: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "0:0"
    volumes: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    @property
    def local(self) -> Path:
        """The folder behind /usr/local, which is not part of this machine's /usr."""
        return self.root.with_name(f"{self.root.name}.local")


def parse(text: str) -> list[Stage]:
    """Return the stages of a Dockerfile."""
    joined = re.sub(r"\\\n", " ", "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#")))
    stages: list[Stage] = []
    for line in filter(str.strip, joined.splitlines()):
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            stages.append(Stage(rest.split(" AS ")[1] if " AS " in rest else str(len(stages))))
        elif stages:
            stages[-1].instructions.append((name, rest.strip()))
    return stages


def build(stages: Sequence[Stage], context: Path, folder: Path) -> Image:
    """Execute the stages and return the image of the last one."""
    images: dict[str, Image] = {}
    for stage in stages:
        images[stage.name] = image = _base_image(folder / stage.name)
        for name, rest in stage.instructions:
            _execute(name, rest, image, context, images)
    return image


def start(
    image: Image, arguments: Sequence[str], variables: dict[str, str], data: Path, **options: object
) -> subprocess.Popen:
    """Start the entry point with arguments as the user of the image, with a read-only root, a /tmp and a volume."""
    environment = image.environment | variables
    return subprocess.Popen(
        _in_root(image, [*image.entrypoint, *(arguments or image.command)], read_only=True, data=data),
        env=environment,
        **options,
    )


def run_health_check(image: Image, variables: dict[str, str], data: Path) -> subprocess.CompletedProcess:
    """Run the health check of the image beside a started container."""
    command = _in_root(image, image.health, read_only=True, data=data)
    return subprocess.run(command, env=image.environment | variables, capture_output=True, text=True, check=False)


def _base_image(root: Path) -> Image:
    image = Image(root)
    for name in ("etc", "tmp", "var/lib", "opt", "root", "proc", "dev", "usr", "run", "home"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    for name in COPIED:
        source = Path("/etc", name)
        if source.is_dir():
            shutil.copytree(source, root / "etc" / name, symlinks=True)
        elif source.exists():
            shutil.copy2(source, root / "etc" / name)
    for name in ("bin", "sbin", "lib"):
        (image.local / name).mkdir(parents=True)
    return image


def _execute(name: str, rest: str, image: Image, context: Path, images: dict[str, Image]) -> None:
    if name == "RUN":
        _run(rest, image)
    elif name == "COPY":
        _copy(shlex.split(rest), image, context, images)
    elif name == "ENV":
        image.environment |= dict(word.split("=", 1) for word in shlex.split(rest))
    elif name == "ARG":
        key, _, value = rest.partition("=")
        image.arguments[key] = value
    elif name == "WORKDIR":
        image.workdir = rest
        (image.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
    elif name == "USER":
        image.user = rest
    elif name == "VOLUME":
        image.volumes += json.loads(rest)
    elif name == "ENTRYPOINT":
        image.entrypoint = json.loads(rest)
    elif name == "CMD":
        image.command = json.loads(rest)
    elif name == "HEALTHCHECK":
        image.health = json.loads(rest[rest.index("[") :])
    else:
        assert name in ("LABEL", "EXPOSE", "STOPSIGNAL"), f"unknown instruction {name}"


def _run(rest: str, image: Image) -> None:
    caches = re.findall(r"--mount=type=cache,target=(\S+)", rest)
    shell = re.sub(r"--mount=\S+", "", rest).strip()
    downloads = {name: os.environ[name] for name in DOWNLOADS if name in os.environ}
    done = subprocess.run(
        _in_root(image, ["sh", "-c", shell], caches=caches, binds=_folders(downloads)),
        env=image.environment | image.arguments | downloads | {"HOME": "/root"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"RUN {shell}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"


def _folders(downloads: dict[str, str]) -> list[str]:
    return [path for path in (downloads.get("PIP_FIND_LINKS", ""),) if path.startswith("/") and Path(path).is_dir()]


def _copy(words: list[str], image: Image, context: Path, images: dict[str, Image]) -> None:
    options = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
    *sources, target = [word for word in words if not word.startswith("--")]
    base = images[options["from"]].root if "from" in options else context
    into = _inside(image, target if target.startswith("/") else f"{image.workdir}/{target}")
    for source in sources:
        found = base / source.lstrip("/")
        place = into / found.name if target.endswith("/") else into
        place.parent.mkdir(parents=True, exist_ok=True)
        if found.is_dir():
            ignored = shutil.ignore_patterns("__pycache__") if "from" not in options else None
            shutil.copytree(found, place, symlinks=True, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy2(found, place)
        if "chmod" in options:
            place.chmod(int(options["chmod"], 8))


def _inside(image: Image, path: str) -> Path:
    if path.startswith("/usr/local/"):
        return image.local / path.removeprefix("/usr/local/")
    assert not path.startswith("/usr/"), "The /usr of this machine is read-only."
    return image.root / path.removeprefix("/")


def _in_root(
    image: Image,
    command: Sequence[str],
    *,
    read_only: bool = False,
    data: Path | None = None,
    caches: Sequence[str] = (),
    binds: Sequence[str] = (),
) -> list[str]:
    """Return the command that runs a command in the root of an image, in a mount namespace of its own."""
    root = shlex.quote(str(image.root))
    cache = Path.home() / ".cache" / "pip"
    cache.mkdir(parents=True, exist_ok=True)
    steps = [
        f"mount --bind {root} {root}",
        f"mount --bind /usr {root}/usr",
        f"mount -o remount,bind,ro {root}/usr",
        f"mount --bind {shlex.quote(str(image.local))} {root}/usr/local",
        f"mount --rbind /proc {root}/proc",
        f"mount --rbind /dev {root}/dev",
    ]
    for path in caches:
        steps += [f"mkdir -p {root}{path}", f"mount --bind {cache} {root}{path}"]
    for path in binds:
        steps += [f"mkdir -p {root}{path}", f"mount --bind {path} {root}{path}"]
    if data:
        [volume] = image.volumes
        steps.append(f"mount --bind {shlex.quote(str(data))} {root}{volume}")
    if read_only:
        steps += [f"mount -o remount,bind,ro {root}/usr/local", f"mount -o remount,bind,ro {root}"]
        steps.append(f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp")
    user, group = image.user.split(":")
    identity = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
    if user != "0":
        identity += ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]
    inner = shlex.join([*identity, "sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", image.workdir, *command])
    steps.append(f"exec {shutil.which('chroot')} {root} {inner}")
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", "; ".join(steps)]

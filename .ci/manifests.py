"""Whether deploy/kubernetes and deploy/compose.yaml are what Kubernetes and Compose take: `.venv/bin/python .ci/manifests.py`.

`kubectl kustomize` builds each folder; what comes out is checked against the schemas of the Kubernetes API, of the oldest
version that is promised and of the newest that is known, unknown keys included. The configurations in them are checked by
the proxy, where one is given: `.ci/manifests.py EXECUTABLE`.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = ROOT / "deploy/kubernetes"
BIN = pathlib.Path(sys.executable).parent
# Native sidecars are on since 1.29; the other job is for what was before.
OLDEST = {"job-before-1.29": "1.25"}
# The API itself does not know these: their schema is the operator's.
ELSEWHERE = {"PodMonitor"}
faults = 0


def check(condition, what, detail=""):
    global faults
    faults += not condition
    print(f"{'ok' if condition else 'FAULT'}: {what}" + ("" if condition else f"\n{detail}"))


def built(folder):
    done = subprocess.run([BIN / "kubectl", "kustomize", folder], capture_output=True, text=True)
    check(done.returncode == 0, f"kubectl kustomize {os.path.relpath(folder, ROOT)}", done.stderr)
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def validate(document, version):
    what = f"{document['kind']} {document['metadata']['name']}, Kubernetes {version}"
    try:
        kubernetes_validate.validate(document, version, strict=True)
        check(True, what)
    except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
        check(False, what, error)


def template(document):
    """A workload's pod template; `None`: it has none."""
    spec = document.get("spec", {})
    return spec.get("jobTemplate", {}).get("spec", spec).get("template")


def pods(documents):
    return [template(document)["spec"] for document in documents if template(document)]


def sidecars_agree():
    one, other = (yaml.safe_load((HERE / f"sidecar/{name}.yaml").read_text()) for name in ("sidecar", "cronjob"))
    check(template(one) == template(other), "sidecar/sidecar.yaml and sidecar/cronjob.yaml have the same pod")
    plain = yaml.safe_load((HERE / "README.md").read_text().split("# Deployment, StatefulSet, DaemonSet, Job\n")[1].split("```")[0])
    have, want = plain["spec"]["template"]["spec"], template(one)["spec"]
    sidecar, whole = have["initContainers"][0], want["initContainers"][0]
    check(have["volumes"] == want["volumes"], "README.md and sidecar.yaml have the same volumes")
    differing = [key for key in sidecar if key not in ("image", "securityContext") and sidecar[key] != whole[key]]
    check(not differing, "README.md's plain sidecar is a part of sidecar.yaml's", differing)


def kubernetes(folders):
    configurations = []
    for folder in folders:
        documents = built(folder)
        for version in (OLDEST.get(folder.name, "1.29"), kubernetes_validate.latest_version()):
            for document in documents:
                if document["kind"] not in ELSEWHERE:
                    validate(document, version)
        maps = {document["metadata"]["name"]: document for document in documents if document["kind"] == "ConfigMap"}
        for pod in pods(documents):
            names = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
            check(names and set(names) <= set(maps), f"{folder.name}: the pod's configuration is there", names)
            for container in pod["containers"] + pod.get("initContainers", []):
                context = container["securityContext"]
                check(
                    context["readOnlyRootFilesystem"] and context["runAsNonRoot"]
                    and context["capabilities"] == {"drop": ["ALL"]} and not context["allowPrivilegeEscalation"]
                    and context["seccompProfile"] == {"type": "RuntimeDefault"} and "resources" in container,
                    f"{folder.name}: {container['name']} has no rights", context)
            sidecars = [container for container in pod.get("initContainers", []) if container.get("restartPolicy") == "Always"]
            check(bool(sidecars) == (folder.name not in OLDEST), f"{folder.name}: native sidecar or none", sidecars)
        if folder.name == "monitored":
            check(any(document["kind"] == "PodMonitor" for document in documents), "monitored: a PodMonitor")
            images = [container["image"] for pod in pods(documents) for container in pod["initContainers"]]
            check(images == ["images.example.com/heimdallr-proxy:0.1.0"], "monitored: its image", images)
        configurations += [document["data"]["config.yaml"] for document in maps.values()]
    return configurations


def compose():
    file = ROOT / "deploy/compose.yaml"
    done = subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", file], capture_output=True, text=True)
    check(done.returncode == 0, "deploy/compose.yaml", done.stdout + done.stderr)
    content = yaml.safe_load(file.read_text())["configs"]["proxy"]["content"]
    return content.replace("$$", "$")


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # Components are no kustomizations by themselves.
        (folder / "monitored").mkdir()
        relative = os.path.relpath(HERE, (folder / "monitored").resolve())
        # What README.md has for pods of one's own.
        text = (HERE / "README.md").read_text().split("# kustomization.yaml\n")[1].split("```")[0]
        text = text.replace("../heimdallr-proxy/deploy/kubernetes", relative)
        (folder / "monitored/kustomization.yaml").write_text(text)
        (folder / "monitored/deployment.yaml").write_text((HERE / "program.yaml").read_text())
        (folder / "monitored/config.yaml").write_text((HERE / "configuration/config.yaml").read_text())
        sidecars_agree()
        texts = kubernetes([HERE, HERE / "job", HERE / "cronjob", HERE / "job-before-1.29", folder / "monitored"]) + [compose()]
        for index, text in enumerate(sorted(set(texts))) if len(sys.argv) > 1 else ():
            for name in ("items", "admin-token"):
                (folder / name).write_text("0123456789abcdef")
                (folder / name).chmod(0o600)
            file = folder / f"{index}.yaml"
            file.write_text(text.replace("/run/secrets/heimdallr-proxy", str(folder)))
            done = subprocess.run([sys.argv[1], "check", "--config", file], capture_output=True, text=True)
            check(done.returncode == 0 and "api.example.com" in done.stdout, f"configuration {index}", done.stdout + done.stderr)
    print(f"{faults} faults")
    sys.exit(bool(faults))


main()

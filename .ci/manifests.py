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
WITHOUT_SIDECAR = {"job-before-1.29", "store-init"}
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


def pieces_agree():
    for first in ("sidecar/sidecar.yaml", "interception/pod.yaml", "postgresql/pod.yaml"):
        one, other = (yaml.safe_load((HERE / first).with_name(name).read_text()) for name in (pathlib.Path(first).name, "cronjob.yaml"))
        check(template(one) == template(other), f"{first} and its cronjob.yaml have the same pod")
    one = yaml.safe_load((HERE / "sidecar/sidecar.yaml").read_text())
    plain = yaml.safe_load((HERE / "README.md").read_text().split("# Deployment, StatefulSet, DaemonSet, Job\n")[1].split("```")[0])
    have, want = plain["spec"]["template"]["spec"], template(one)["spec"]
    sidecar, whole = have["initContainers"][0], want["initContainers"][0]
    check(have["volumes"] == want["volumes"], "README.md and sidecar.yaml have the same volumes")
    names = {variable["name"] for container in have["containers"] for variable in container["env"]}
    check({"http_proxy", "no_proxy"} <= names and have.get("terminationGracePeriodSeconds", 30) >= 38, "README.md: variables and time", have)
    differing = [key for key in sidecar if key not in ("image", "securityContext") and sidecar[key] != whole[key]]
    check(not differing, "README.md's plain sidecar is a part of sidecar.yaml's", differing)


def reads_the_variables(container, maps):
    """What a container of a program has in its environment, with what it takes from the ConfigMaps."""
    values = {variable["name"]: variable.get("value") for variable in container.get("env", [])}
    for source in container.get("envFrom", []):
        values |= maps.get(source["configMapRef"]["name"], {}).get("data", {})
    return values


def pod_keeps_promises(name, pod, maps):
    """What README.md and docs say of the pods of programs."""
    proxies = [one for one in pod.get("initContainers", []) + pod["containers"] if one["name"] == "heimdallr-proxy"]
    check(len(proxies) == 1, f"{name}: one proxy", proxies)
    for container in pod["containers"]:
        values = reads_the_variables(container, maps)
        if container["name"] == "heimdallr-proxy":
            continue
        excluded = (values.get("no_proxy") or "").split(",")
        check(
            values.get("http_proxy") == "http://127.0.0.1:8080" and {"localhost", "127.0.0.1", "::1"} <= set(excluded),
            f"{name}: {container['name']} asks the proxy for all but its own machine", values)
        files = [value for value in values.values() if value.startswith("/")]
        mounted = [mount["mountPath"] + "/" for mount in container.get("volumeMounts", []) if mount.get("readOnly")]
        check(
            all(file.startswith(tuple(mounted)) for file in files), f"{name}: {container['name']} has what it trusts", files)
    if proxies[0].get("restartPolicy") == "Always":
        # The kubelet ends the program first: the proxy's eight seconds (drain_timeout) come after the program's thirty.
        check(pod.get("terminationGracePeriodSeconds", 30) >= 38, f"{name}: the proxy has time to end after the program")
    mounts = {mount["name"] for mount in proxies[0]["volumeMounts"]}
    others = {
        mount["name"] for container in pod["containers"] if container["name"] != "heimdallr-proxy"
        for mount in container.get("volumeMounts", [])}
    check(not mounts & others, f"{name}: the program sees no secret and no key of the proxy's", mounts & others)
    probed = [key for key in ("startupProbe", "readinessProbe", "livenessProbe") if "httpGet" in proxies[0].get(key, {})]
    config = next(volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume)
    admin = yaml.safe_load(maps[config]["data"]["config.yaml"])["admin"]
    # The kubelet comes by the pod's address, which is IPv6 in some clusters.
    check(admin["listen"] == ("[::]:8081" if probed else "127.0.0.1:8081"), f"{name}: the probes reach the admin port", admin)
    # `kubectl port-forward` ends at the pod's loopback; servers take a redirect URI of 127.0.0.1, and few one of [::1].
    own = admin.get("url") == "http://127.0.0.1:8081" and "token" in admin
    check(own or not probed, f"{name}: people sign in by port-forward", admin)
    check("heimdallr-proxy-tmp" in mounts or "tmp" in mounts, f"{name}: `kubectl exec … reload` finds the admin socket", mounts)
    paths = [mount for mount in proxies[0]["volumeMounts"] if "subPath" in mount]
    check(not paths, f"{name}: a ConfigMap that changes reaches the proxy", paths)


def policy_keeps_promises(documents):
    """A policy closes all that it does not name: every port but the admin port has to stay open."""
    (policy,) = (document["spec"] for document in documents if document["kind"] == "NetworkPolicy")
    labels = [(document["metadata"], template(document)["metadata"]["labels"]) for document in documents if template(document)]
    selected = policy["podSelector"]["matchLabels"].items()
    check(all(selected <= pod.items() for _, pod in labels), "network-policy: it selects the pods", labels)
    open_ports, admin = set(), []
    for rule in policy["ingress"]:
        ports = {
            number for port in rule["ports"] if port["protocol"] == "TCP"
            for number in range(port["port"], port.get("endPort", port["port"]) + 1)}
        if "from" not in rule:
            open_ports |= ports
        elif 8081 in ports:
            admin += rule["from"]
    check(open_ports == set(range(1, 65536)) - {8081}, "network-policy: the admin port alone is closed")
    check(len(admin) == 1 and {"namespaceSelector", "podSelector"} <= admin[0].keys(), "network-policy: one Prometheus", admin)


def chosen_by_label(folder):
    """A workload without the label stays as it is, whatever its kind; one with it gets the proxy."""
    sources = {"Deployment": "program.yaml", "Job": "job/job.yaml", "CronJob": "cronjob/cronjob.yaml"}
    for component in ("sidecar", "interception", "postgresql"):
        for kind, source in sources.items():
            text = (HERE / source).read_text()
            for labelled in (True, False):
                (folder / "workload.yaml").write_text(text if labelled else text.replace("{heimdallr-proxy: sidecar}", "{}", 1))
                relative = os.path.relpath(HERE / component, folder.resolve())
                (folder / "kustomization.yaml").write_text(f"resources: [workload.yaml]\ncomponents: [{relative}]\n")
                done = subprocess.run([BIN / "kubectl", "kustomize", folder], capture_output=True, text=True)
                documents = [document for document in yaml.safe_load_all(done.stdout) if document]
                (pod,) = pods(documents) or [{}]
                check(
                    done.returncode == 0 and bool(pod.get("initContainers")) == labelled,
                    f"{component}: a {kind} {'with' if labelled else 'without'} the label", done.stdout + done.stderr)


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
            check(bool(sidecars) == (folder.name not in WITHOUT_SIDECAR), f"{folder.name}: native sidecar or none", sidecars)
            if folder.name != "store-init":
                pod_keeps_promises(folder.name, pod, maps)
        if folder.name == "replicas":
            policy_keeps_promises(documents)
        if folder.name == "monitored":
            check(any(document["kind"] == "PodMonitor" for document in documents), "monitored: a PodMonitor")
            images = [container["image"] for pod in pods(documents) for container in pod["initContainers"]]
            check(images == ["images.example.com/heimdallr-proxy:0.1.0"], "monitored: its image", images)
        configurations += [document["data"]["config.yaml"] for document in maps.values() if "config.yaml" in document["data"]]
    return configurations


def compose():
    file = ROOT / "deploy/compose.yaml"
    done = subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", file], capture_output=True, text=True)
    check(done.returncode == 0, "deploy/compose.yaml", done.stdout + done.stderr)
    document = yaml.safe_load(file.read_text())
    services = document["services"]
    shared = {name: service["network_mode"] for name, service in services.items() if "network_mode" in service}
    check(
        set(shared) == {"proxy", "program"} and len(set(shared.values())) == 1, "compose: proxy and program share a loopback",
        shared)
    # A container's network ends with it. So no restart of a part may end the network of the others.
    holder = next(iter(shared.values())).removeprefix("service:")
    check(
        holder not in shared and "pause" in services[holder]["image"] and not services[holder].keys() & {"build", "configs"},
        "compose: a restart of the proxy leaves the program's network", holder)
    check(
        all(service["depends_on"].get(holder, {}).get("restart") for name, service in services.items() if name in shared),
        "compose: who shares the network is restarted with it")
    return document["configs"]["proxy"]["content"].replace("$$", "$")


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
        pieces_agree()
        (folder / "labels").mkdir()
        chosen_by_label(folder / "labels")
        names = ("job", "cronjob", "job-before-1.29", "https", "replicas", "store-init")
        texts = kubernetes([HERE, *(HERE / name for name in names), folder / "monitored"]) + [compose()]
        for index, text in enumerate(sorted(set(texts))) if len(sys.argv) > 1 else ():
            for name in ("secrets/heimdallr-proxy", "secrets/heimdallr-proxy-store"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            for name in ("items", "admin-token", "tls.key", "-store/store.key", "-store/connection"):
                path = folder / f"secrets/heimdallr-proxy{name if name[0] == '-' else '/' + name}"
                path.write_text("host=db.example.com" if name.endswith("connection") else "0123456789abcdef" * 2)
                path.chmod(0o600)
            file = folder / f"{index}.yaml"
            file.write_text(text.replace("/run/secrets", f"{folder}/secrets").replace("/var/lib", str(folder)))
            (folder / "heimdallr-proxy").mkdir(exist_ok=True)
            done = subprocess.run([sys.argv[1], "check", "--config", file], capture_output=True, text=True)
            check(done.returncode == 0 and "api.example.com" in done.stdout, f"configuration {index}", done.stdout + done.stderr)
    print(f"{faults} faults")
    sys.exit(bool(faults))


main()

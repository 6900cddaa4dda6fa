import Administration
import Configuration
import CurlTransport
import WireText

/// The environment of this process, and the running proxy with the same configuration.
struct SurroundingsCheck {
    let source: ConfigurationSource
    let configuration: Configuration

    var findings: [Finding] {
        var findings = LibcurlGlobal.removedVariables.map { name in
            Finding.warning(
                "environment", "\(name) is ignored: it would write the keys of all TLS connections to a file",
                "unset \(name) where the proxy is started")
        }
        if case .file = source, let admin = configuration.admin, hasChanged(admin) {
            let text = "the running proxy has read another version of the configuration file"
            findings.append(.warning("file", text, "run heimdallr-proxy reload"))
        }
        return findings
    }

    private func hasChanged(_ admin: AdminSettings) -> Bool {
        for path in AdminOptions.sockets(of: admin, environment: ProcessEnvironment.all) {
            guard let answer = try? AdminClient(path: path, timeout: 2).send("GET", "/status"),
                let status = try? JSONParser.parse(answer.body)
            else { continue }
            return status["configuration"]?["changed_since_read"] == .bool(true)
        }
        return false
    }
}

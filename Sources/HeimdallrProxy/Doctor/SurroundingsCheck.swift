import Administration
import Configuration
import CurlTransport
import WireText

/// The environment of this process, and the proxy that runs with the same configuration, if there is one.
struct SurroundingsCheck {
    let source: ConfigurationSource
    let configuration: Configuration

    /// In seconds, for the running proxy's answer.
    private static let patience = 2

    var findings: [Finding] {
        let variables = LibcurlGlobal.removedVariables.map { name in
            Finding.warning(
                "environment", "\(name) is ignored: it would write the keys of all TLS connections to a file",
                "unset \(name) where the proxy is started")
        }
        guard hasRunningProxyAnotherFile else { return variables }
        return variables + [
            .warning(
                "file", "the running proxy has read another version of the configuration file",
                "run heimdallr-proxy reload")
        ]
    }

    private var hasRunningProxyAnotherFile: Bool {
        guard case .file = source, let admin = configuration.admin else { return false }
        for path in AdminOptions.sockets(of: admin, environment: ProcessEnvironment.all) {
            let client = AdminClient(path: path, timeout: Self.patience)
            guard let answer = try? client.send("GET", "/status"), let status = try? JSONParser.parse(answer.body)
            else { continue }
            return status["configuration"]?["changed_since_read"] == .bool(true)
        }
        return false
    }
}

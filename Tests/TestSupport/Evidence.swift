import Foundation
import Synchronization

/// Keeps the executable's output in a run of tests, and the run's secrets, for `.ci/secrets.py`, which searches the
/// output for the secrets. Active only if `HEIMDALLR_TESTS_KEEP` names a folder, as in `.ci/run`.
///
/// Tests need not name secrets. Secrets are credentials that an origin or a token endpoint receives, tokens that a
/// token endpoint issues, and contents of files that a configuration names as secrets.
enum Evidence {
    static let folder: String? = ProcessInfo.processInfo.environment["HEIMDALLR_TESTS_KEEP"]
    private static let secrets = file("secrets")
    private static let written = file("written")
    private static let noted = Mutex<Set<String>>([])

    /// Limit in bytes of the output kept from one process, because load tests write a lot.
    private static let mostWritten = 4 << 20
    /// Minimum length of a secret. Shorter values may be ordinary words.
    private static let shortest = 12
    /// Commands that print a secret on purpose, or another program's output.
    private static let excepted = ["token", "exec", "demo", "keygen"]

    private static func file(_ name: String) -> Mutex<FileHandle?> {
        guard let folder else { return Mutex(nil) }
        let path = "\(folder)/\(name)"
        if !FileManager.default.fileExists(atPath: path) {
            _ = FileManager.default.createFile(atPath: path, contents: nil)
        }
        let handle = FileHandle(forWritingAtPath: path)
        _ = try? handle?.seekToEnd()
        return Mutex(handle)
    }

    static func secret(_ value: String?) {
        guard folder != nil, let value else { return }
        for line in value.split(whereSeparator: \.isNewline).map(String.init) where line.utf8.count >= shortest {
            guard noted.withLock({ $0.insert(line).inserted }) else { continue }
            secrets.withLock { _ = try? $0?.write(contentsOf: Data((line + "\n").utf8)) }
        }
    }

    /// Notes a credential, without its scheme.
    static func credential(_ value: String) { secret(value.split(separator: " ", maxSplits: 1).last.map(String.init)) }

    private static let credentials = ["authorization", "dpop", "x-api-key", "x-amz-security-token"]

    static func received(_ fields: [Field]) {
        guard folder != nil else { return }
        for field in fields where credentials.contains(field.name.lowercased()) { credential(field.value) }
    }

    private static let parameters = [
        "client_secret", "password", "refresh_token", "client_assertion", "assertion", "code", "code_verifier",
        "subject_token", "device_code", "token",
    ]

    static func received(form: [(name: String, value: String)]) {
        guard folder != nil else { return }
        for (name, value) in form where parameters.contains(name) { secret(value) }
    }

    static func gave(_ body: String) {
        guard folder != nil else { return }
        for match in body.matches(of: #/"(?:access_token|refresh_token|id_token|device_code)"\s*:\s*"([^"\\]+)"/#) {
            secret(String(match.1))
        }
    }

    /// Notes the configuration's secrets. Returns the configuration with log level `debug`, unless it sets one.
    static func prepared(_ configuration: String, files: [String: String], environment: [String: String?]) -> String {
        guard folder != nil else { return configuration }
        for match in configuration.matches(of: #/\{ *file: *FOLDER\/([\w.-]+) *\}/#) { secret(files[String(match.1)]) }
        for match in configuration.matches(of: #/\{ *env: *(\w+) *\}/#) { secret(environment[String(match.1)] ?? nil) }
        guard !configuration.hasPrefix("log:"), !configuration.contains("\nlog:"), !configuration.hasPrefix("{") else {
            return configuration
        }
        return configuration + "\nlog: {level: debug}\n"
    }

    static func ended(_ process: ChildProcess) {
        guard folder != nil, let position = process.arguments.firstIndex(where: { $0.hasSuffix("/heimdallr-proxy") }),
            let verb = process.arguments.dropFirst(position + 1).first, !excepted.contains(verb)
        else { return }
        let text = "== \(process.arguments[position...].joined(separator: " "))\n\(process.output)\n\(process.errors)\n"
        written.withLock { _ = try? $0?.write(contentsOf: Data(text.utf8.prefix(mostWritten))) }
    }

    /// Keeps the proxy's own answers, but not those of upstreams.
    static func answered(_ response: RawResponse) {
        guard folder != nil, response.field("Proxy-Status")?.hasPrefix("heimdallr-proxy") == true else { return }
        let fields = response.fields.map(\.description).joined(separator: "\n")
        written.withLock { _ = try? $0?.write(contentsOf: Data("== an answer\n\(fields)\n\n\(response.text)\n".utf8)) }
    }
}

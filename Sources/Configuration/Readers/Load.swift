extension Configuration {
    /// Some 30,000 clients, each with an upstream.
    private static let sizeLimit = 8 << 20

    /// Reads and checks a configuration file. Also reads and checks the files and variables of secrets, but keeps
    /// no contents of them.
    ///
    /// - Parameters:
    ///   - file: path of the file. Relative paths in the configuration start at its folder.
    ///   - environment: source of `${NAME}` and `{env: NAME}`.
    ///   - isForPrograms: whether the reader only uses the proxy. No secret and no certificate is then read, and only
    ///     variables of the proxy's addresses and hosts have to be set.
    /// - Throws: all problems.
    public static func load(
        file: String, environment: [String: String], isForPrograms: Bool = false
    ) throws(ConfigurationError) -> (configuration: Configuration, warnings: [ConfigurationError.Problem]) {
        try parse(yaml: text(of: file), file: file, environment: environment, isForPrograms: isForPrograms)
    }

    /// Does the same as `load` with the text of a file. `file` is only for messages and relative paths.
    public static func parse(
        yaml: String, file: String, environment: [String: String], isForPrograms: Bool = false
    ) throws(ConfigurationError) -> (configuration: Configuration, warnings: [ConfigurationError.Problem]) {
        let diagnostics = Diagnostics(file: file, environment: environment, isForPrograms: isForPrograms)
        return try Loader.load(YAMLDocument.parse(yaml, diagnostics), diagnostics)
    }

    /// Reads only the admin addresses of a configuration, for commands that connect to the running proxy but may not
    /// read the secrets. In an invalid file, which may have been valid when the proxy started, reads the lines of the
    /// section alone.
    ///
    /// - Returns: `nil` if the configuration has no `admin` section.
    /// - Throws: an error if the file can't be read, or is invalid and has no such lines.
    public static func adminSettings(
        file: String, environment: [String: String]
    ) throws(ConfigurationError) -> AdminSettings? {
        let yaml = try text(of: file)
        do throws(ConfigurationError) {
            return try read("admin", in: yaml, Diagnostics(file: file, environment: environment)) {
                $0.adminAddresses()
            }
        } catch {
            guard let alone = adminLines(of: yaml) else { throw error }
            var settings: AdminSettings?
            let diagnostics = Diagnostics(file: file, environment: environment)
            _ = try? read("admin", in: alone, diagnostics) { section in
                settings = section.adminAddresses()
                return settings
            }
            // An invalid `listen` leaves the socket, if the section names one.
            guard let settings, settings.socket != nil || !diagnostics.hasErrors else { throw error }
            return settings
        }
    }

    /// Limit of the section's lines in a file with a fault in the section.
    private static let mostAdminLines = 64

    /// Returns the lines of the section `admin`, without those that make it invalid YAML.
    private static func adminLines(of yaml: String) -> String? {
        let lines = yaml.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        guard let begin = lines.firstIndex(where: { $0.hasPrefix("admin:") }) else { return nil }
        let rest = lines[(begin + 1)...].prefix { line in line.first.map { $0 == " " || $0 == "#" } ?? true }
        let whole = (lines[begin...begin] + rest).joined(separator: "\n")
        func isYAML(_ text: String) -> Bool {
            YAMLDocument.parse(text, Diagnostics(file: "", environment: [:])) != nil
        }
        if isYAML(whole) { return whole }
        return lines[begin...].prefix(rest.count + 1).prefix(mostAdminLines).reduce(into: "") { kept, line in
            if isYAML(kept + line) { kept += line + "\n" }
        }
    }

    /// Reads only the listeners of a configuration, for a command that checks whether the proxy listens.
    ///
    /// - Throws: an error if the file can't be read, or `proxy.listen` is invalid.
    public static func proxyListeners(
        file: String, environment: [String: String]
    ) throws(ConfigurationError) -> [ListenAddress] {
        let diagnostics = Diagnostics(file: file, environment: environment)
        let listeners = try read("proxy", in: text(of: file), diagnostics) { $0.listeners("listen") }
        return (listeners ?? Listener.defaults).map(\.address)
    }

    private static func read<Value>(
        _ name: String, in text: String, _ diagnostics: Diagnostics, _ read: (Section) -> Value?
    ) throws(ConfigurationError) -> Value? {
        guard let root = YAMLDocument.parse(text, diagnostics), case .mapping(let entries) = root.content
        else { throw diagnostics.failure }
        let value = Section(entries, path: "", pattern: "", at: .whole, diagnostics).section(name).flatMap(read)
        guard !diagnostics.hasErrors else { throw diagnostics.failure }
        return value
    }

    /// Whether the file has the line `playground: true`. The playground starts before `load`, because `load` needs
    /// variables with the playground's ports. Returns false for an unreadable file; `load` then reports the reason.
    public static func wantsPlayground(file: String) -> Bool {
        guard let text = try? text(of: file) else { return false }
        for line in text.utf8.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            guard let colon = line.firstIndex(of: 0x3A), let key = String(line[..<colon]), key == "playground" else {
                continue
            }
            let value = line[colon...].dropFirst().split(separator: 0x20).first.flatMap(String.init)
            return value?.lowercased() == "true"
        }
        return false
    }

    private static func text(of file: String) throws(ConfigurationError) -> String {
        let bytes: [UInt8]
        do throws(BadValue) { bytes = try Files.read(file, limit: sizeLimit) } catch {
            throw ConfigurationError(problems: [.init(file: file, message: error.message)])
        }
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        let fault = firstFault(in: bytes)
        throw ConfigurationError(problems: [
            .init(
                file: file, line: fault.line, column: fault.column, message: "not valid UTF-8: save the file as UTF-8")
        ])
    }

    private static func firstFault(in bytes: [UInt8]) -> YAMLText.Location {
        var (decoder, rest, good) = (UTF8(), bytes.makeIterator(), "")
        while case .scalarValue(let scalar) = decoder.decode(&rest) { good.unicodeScalars.append(scalar) }
        return YAMLText(Array(good.utf8)).end
    }
}

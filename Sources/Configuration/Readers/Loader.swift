import HTTPMessage

/// Converts the tree to a checked configuration: reads all sections, then checks the rules across sections.
struct Loader {
    let diagnostics: Diagnostics
    var configuration = Configuration()
    var listeners: [Listener] = []
    var clientPositions: [String: Position] = [:]
    var upstreams: [UpstreamReader.Result] = []

    static func load(
        _ root: Node?, _ diagnostics: Diagnostics
    ) throws(ConfigurationError) -> (configuration: Configuration, warnings: [ConfigurationError.Problem]) {
        var loader = Loader(diagnostics: diagnostics)
        if let root { loader.read(root) }
        guard !diagnostics.hasErrors else { throw diagnostics.failure }
        return (loader.configuration, diagnostics.warnings)
    }

    private mutating func read(_ root: Node) {
        guard case .mapping(let entries) = root.content else {
            guard !root.isNull else {
                diagnostics.error(.whole, "the file is empty: write at least `upstreams:`; see the documentation")
                return
            }
            let missing = root.missingColon
            diagnostics.error(
                missing?.position ?? root.position,
                "write `key: value` lines at the top of the file, not \(root.kind)\(missing?.advice ?? "")")
            return
        }
        configuration.variables = VariableNames.inside(root)
        let section = Section(entries, path: "", pattern: "", at: .whole, diagnostics)
        readSections(section)
        // `exec` removes these variables, because a program could get the same credentials with them.
        if upstreams.contains(where: { $0.settings.usesContainerCredentials }) {
            configuration.variables.formUnion(SigV4Reader.variables)
        }
        section.finish()
        checkAcrossSections(section)
        bindUpstreams()
        bindMetadata()
        bindIssued()
        for name in ["store", "interception", "audit", "admin"] {
            diagnostics.note(opened: name, at: section.position(of: name))
        }
        for listener in listeners { diagnostics.note(opened: listener.address.description, at: listener.position) }
        configuration.keyUses = diagnostics.keyUses
    }

    static func outline(_ section: Section) {
        var loader = Loader(diagnostics: section.diagnostics)
        loader.readSections(section)
    }

    private mutating func readSections(_ section: Section) {
        listeners = Listener.defaults
        if let proxy = section.section("proxy") { (configuration.proxy, listeners) = proxy.proxySettings() }
        if let admin = section.section("admin") {
            let (settings, listener) = admin.adminSettings()
            configuration.admin = settings
            listeners.append(listener)
        }
        if let log = section.section("log") { configuration.log = log.logSettings() }
        configuration.trustAnchorsFile = section.section("tls")?.trustAnchors()
        if let store = section.section("store") { configuration.store = store.storeSettings() }
        configuration.interception = section.section("interception")?.interceptionSettings()
        configuration.hooks = section.section("hooks")?.hooksSettings()
        configuration.audit = section.auditSettings()
        configuration.tracing = section.section("tracing")?.tracingSettings()
        section.read("playground", into: &configuration.playground, Grammar.boolean)
        readClients(section)
        readUpstreams(section)
        readMetadata(section)
    }

    // MARK: Lists

    private mutating func readClients(_ section: Section) {
        let shape = Shape.section { _ = ClientReader.read("", $0) }
        configuration.clients = section.mapping(
            "clients", of: "client names", to: "their settings", shape, name: Grammar.name
        ) { entry, _ in
            if entry.key == AutoReader.word {
                diagnostics.error(
                    entry.keyPosition,
                    "clients.auto: this name is reserved for `client: auto`: write another name")
            }
            clientPositions[entry.key] = entry.keyPosition
            return Section(
                entry.value, path: "clients.\(entry.key)", pattern: "clients.*", at: entry.keyPosition, diagnostics
            ).map { ClientReader.read(entry.key, $0) }
        }.map(\.value)
    }

    private mutating func readUpstreams(_ section: Section) {
        section.tell("upstreams", .list(.section { _ = UpstreamReader.read($0) }, 0...Int.max))
        guard let node = section.node("upstreams") else {
            if !section.has("upstreams"), configuration.proxy.unmatched == .reject {
                diagnostics.warn(.whole, "there are no `upstreams`: every request will be refused")
            }
            return
        }
        guard case .sequence(let elements) = node.content else {
            section.error("upstreams", "write a list (`- host: api.example.com`), not \(node.kind)")
            return
        }
        for (index, element) in elements.enumerated() {
            guard
                let upstream = Section(element, path: "upstreams[\(index)]", pattern: "upstreams", diagnostics),
                let result = UpstreamReader.read(upstream, intercepts: configuration.proxy.intercepts)
            else { continue }
            upstreams.append(result)
            configuration.upstreams.append(result.settings)
            if let auto = result.auto { add(auto, result) }
            if let listener = result.listener { listeners.append(listener) }
        }
    }
}

import HTTPMessage
import Heimdallr
import WireText

// The section `metadata`. Each entry becomes rules that are answered here, for the addresses at which programs ask.
extension Loader {
    mutating func readMetadata(_ section: Section) {
        section.tell("metadata", .list(.section { _ = Self.readMetadata($0) }, 0...32))
        guard let node = section.node("metadata") else { return }
        guard case .sequence(let elements) = node.content else {
            return section.error("metadata", "write a list (`- {kind: google, client: NAME}`), not \(node.kind)")
        }
        for (index, element) in elements.enumerated() {
            guard let entry = Section(element, path: "metadata[\(index)]", pattern: "metadata", diagnostics),
                let (settings, client, listener, callers) = Self.readMetadata(entry)
            else { continue }
            add(settings, client, listener, callers, entry, index)
        }
    }

    private typealias Entry = (
        settings: MetadataSettings, client: String, listener: Listener?, callers: Callers
    )

    private static func readMetadata(_ section: Section) -> Entry? {
        defer { section.finish() }
        let kind: MetadataSettings.Kind? = section.value("kind", Grammar.word)
        section.need("kind", saying: "\(section.path): write `kind: google`, `azure` or `aws`")
        let client = section.value("client", Grammar.nonempty)
        section.need("client", saying: "\(section.path): name the `client` whose token programs get")
        var settings = MetadataSettings(kind: kind ?? .google)
        let listener = section.listener("listen")
        settings.authorization = section.secret("authorization", rule: InjectedValue.fieldValue)
        section.read("project", into: &settings.project, Grammar.printable)
        section.read("project_number", into: &settings.projectNumber, Grammar.printable)
        section.read("email", into: &settings.email, Grammar.printable)
        settings.scopes = section.list("scopes", Grammar.printable) ?? []
        settings.resources = section.list("resources", Grammar.printable) ?? []
        let callers = section.section("callers")?.callers() ?? Callers()
        for key in ["project", "project_number", "email", "scopes"] where settings.kind != .google {
            section.refuse(key, saying: "only Google's programs ask for this: leave it out")
        }
        if settings.kind != .azure {
            section.refuse("resources", saying: "only Azure's programs name resources: leave it out")
        }
        if settings.kind == .google {
            section.refuse(
                "authorization", saying: "Google's programs send no secret: leave it out, and write `callers`")
        }
        if section.has("authorization"), settings.authorization == nil { return nil }
        guard kind != nil, let client else { return nil }
        return (settings, client, listener, callers)
    }

    private mutating func add(
        _ metadata: MetadataSettings, _ client: String, _ listener: Listener?, _ callers: Callers, _ section: Section,
        _ number: Int
    ) {
        // Programs with a listener of their own ask there only.
        let places =
            listener == nil
            ? MetadataSettings.places(metadata.kind, hasAuthorization: metadata.authorization != nil)
            : [("\(metadata.kind.rawValue)-\(number).metadata.invalid", [])]
        for (index, place) in places.enumerated() {
            guard let host = try? Grammar.hostPattern(place.host) else { continue }
            var settings = UpstreamSettings(host: host)
            settings.paths = place.paths
            (settings.client, settings.callers, settings.metadata) = (client, callers, metadata)
            settings.injections = [.header(name: "Authorization", scheme: "Bearer")]
            settings.url = .init(
                scheme: .http, authority: .init(host: host.host, port: nil), path: "")
            settings.allowPlaintext = true
            settings.tokenWait = .seconds(5)
            if index == 0 { (settings.listen, settings.listenerTLS) = (listener?.address, listener?.tls) }
            upstreams.append(.init(settings: settings, section: section, listener: listener, auto: nil))
            configuration.upstreams.append(settings)
        }
        if let listener { listeners.append(listener) }
    }

    /// Checks the clients of metadata services, and renews their tokens before any program asks for another one.
    mutating func bindMetadata() {
        for upstream in upstreams {
            guard let metadata = upstream.settings.metadata,
                let index = configuration.clients.firstIndex(where: { $0.name == upstream.settings.client })
            else { continue }
            let client = configuration.clients[index]
            if !client.isExportable {
                diagnostics.error(
                    upstream.clientPosition,
                    "\(upstream.path).client: programs get this client's token: write `exportable: true` at the client, if "
                        + "that is meant")
            }
            if (client.grantType == .aws) != (metadata.kind == .aws) {
                diagnostics.error(
                    upstream.clientPosition,
                    "\(upstream.path).client: `kind: aws` and `grant_type: aws` belong together: programs want keys of AWS, and "
                        + "others tokens")
            }
            configuration.clients[index].refreshBefore = max(
                client.refreshBefore, MetadataSettings.lead(metadata.kind))
        }
    }
}

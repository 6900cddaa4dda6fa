import Configuration
import HTTPMessage

/// One upstream of the configuration, prepared for judging and writing requests. A class, because each request refers
/// to its upstream.
final class UpstreamRule: Sendable {
    let settings: UpstreamSettings
    /// Index in the configuration; `nil` for hosts that the configuration does not name.
    let index: Int?
    let name: String
    /// Destination of all requests; `nil` for a wildcard without `url`, whose requests go to their own authority.
    let fixed: Destination?
    let pathPrefix: [UInt8]
    let injection: InjectionRules
    /// Whether requests stay below the path of `url`.
    let isConfined: Bool
    /// Whether this upstream covers only a part of its server.
    let isLimited: Bool
    /// Whether the proxy answers itself, and forwards nothing: token requests (`issue`), questions for metadata.
    let answersHere: Bool
    /// Whether token requests are answered (`issue`), and whether issued placeholders are replaced. Asked of each request: a
    /// computed property of the settings would copy them.
    let issues: Bool
    let takesIssued: Bool

    init(_ settings: UpstreamSettings, index: Int?, name: String? = nil) {
        self.settings = settings
        self.index = index
        self.name = name ?? settings.host.description
        fixed = settings.url.map { url in
            Destination(
                scheme: url.scheme, authority: url.authority,
                serverName: settings.tls.serverName)
        }
        pathPrefix = Array((settings.url?.path ?? "").utf8)
        injection = InjectionRules(settings)
        isConfined = pathPrefix.contains { $0 != UInt8(ascii: "/") }
        answersHere = settings.answersHere
        issues = !settings.issue.isEmpty
        takesIssued = settings.takesIssued
        isLimited = isConfined || !settings.paths.isEmpty || !settings.fields.isEmpty
    }

    /// Rules for hosts that the configuration does not name (`unmatched: forward`): plain http without a credential.
    static let unmatched = UpstreamRule(
        UpstreamSettings(host: HostPattern(wildcard: true, host: .name("unmatched"), port: nil)), index: nil,
        name: "unmatched")

    func destination(for authority: Authority, scheme: Scheme) -> Destination {
        fixed ?? Destination(scheme: scheme, authority: authority, serverName: settings.tls.serverName)
    }

    /// Whether the path rules allow the target of COPY or MOVE, the Destination field (RFC 4918, section 10.3).
    func covers(destinationField value: Span<UInt8>, _ named: ProgramAddress, _ destination: Destination) -> Bool {
        map(named, destination)
            .covers(destination: value, paths: settings.paths, isRewritten: settings.rewrite)
    }

    func map(_ named: ProgramAddress, _ destination: Destination) -> AddressMap {
        let host = settings.host
        return AddressMap(
            named: named, destination: destination,
            host: host.wildcard ? nil : Authority(host: host.host, port: host.port), prefix: pathPrefix,
            keepsHost: settings.keepsHost, changesCookies: index != nil)
    }
}

/// The whole configuration, checked: every reference resolves, every value is in range.
/// Plain values; safe to hand to any thread.
public struct Configuration: Sendable, Equatable {
    public var proxy = ProxySettings()
    /// `nil`: there is no admin port.
    public var admin: AdminSettings?
    public var log = LogSettings()
    /// Extra trust anchors (a PEM file) for every outgoing connection, added to the system's.
    public var trustAnchorsFile: String?
    public var store = StoreSettings.memory
    /// `nil`: nobody is told.
    public var hooks: HooksSettings?
    /// `nil`: it is not written who was given which credential.
    public var audit: AuditSettings?
    /// `nil`: no spans are made.
    public var tracing: TracingSettings?
    /// In the order of the file.
    public var clients: [ClientSettings] = []
    /// In the order of the file.
    public var upstreams: [UpstreamSettings] = []
    /// The embedded authorization server and API on loopback.
    public var playground = false
    /// The environment variables that the text names, by `${NAME}` or `{env: NAME}`.
    public var variables: Set<String> = []
    /// The keys and certificates that it names.
    public var keyUses = KeyUses()

    public init() {}
}

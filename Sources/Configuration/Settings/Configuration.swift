/// The whole configuration, checked: every reference resolves, every value is in range. Plain values; safe to pass to
/// any thread.
public struct Configuration: Sendable, Equatable {
    public var proxy = ProxySettings()
    /// `nil`: no admin port.
    public var admin: AdminSettings?
    public var log = LogSettings()
    /// Additional trust anchors (a PEM file) for every outgoing connection.
    public var trustAnchorsFile: String?
    public var store = StoreSettings.memory
    /// `nil`: no hooks.
    public var interception: InterceptionSettings?
    public var hooks: HooksSettings?
    /// `nil`: no audit stream.
    public var audit: AuditSettings?
    /// `nil`: no spans.
    public var tracing: TracingSettings?
    /// In the order of the file.
    public var clients: [ClientSettings] = []
    /// In the order of the file.
    public var upstreams: [UpstreamSettings] = []
    /// The embedded authorization server and API on loopback.
    public var playground = false
    /// The environment variables in the text, from `${NAME}` and `{env: NAME}`.
    public var variables: Set<String> = []
    /// The keys and certificates in the text.
    public var keyUses = KeyUses()

    public init() {}
}

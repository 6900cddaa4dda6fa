/// The whole configuration. All references resolve, and all values are in range.
public struct Configuration: Sendable, Equatable {
    public var proxy = ProxySettings()
    /// `nil` for no admin port.
    public var admin: AdminSettings?
    public var log = LogSettings()
    /// PEM file of additional trust anchors for all outgoing connections.
    public var trustAnchorsFile: String?
    public var store = StoreSettings.memory
    public var interception: InterceptionSettings?
    public var hooks: HooksSettings?
    /// `nil` for no audit stream.
    public var audit: AuditSettings?
    /// `nil` for no spans.
    public var tracing: TracingSettings?
    /// In the order of the file.
    public var clients: [ClientSettings] = []
    /// In the order of the file.
    public var upstreams: [UpstreamSettings] = []
    /// Whether to start the embedded authorization server and API on loopback.
    public var playground = false
    /// Names of the environment variables that the text uses: `${NAME}`, `{env: NAME}`, `credentials: container`.
    public var variables: Set<String> = []
    /// The keys and certificates in the text.
    public var keyUses = KeyUses()

    public init() {}
}

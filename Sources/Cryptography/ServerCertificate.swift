/// The certificate of a TLS server, with its key. Immutable, so safe on any thread.
public struct ServerCertificate: Sendable {
    /// DER of the server's own certificate, then of the authorities between it and the root, without the root.
    public let chain: [[UInt8]]
    public let key: SigningKey

    public init(chain: [[UInt8]], key: SigningKey) {
        self.chain = chain
        self.key = key
    }
}

/// The built `heimdallr-proxy` and the origin of `http://api.test/`, for tests that check both.
public struct ProxyAndOrigin: Sendable {
    public let origin: RecordingOrigin
    public let proxy: RunningProxy

    /// The other parameters are those of `RunningProxy`.
    /// - Parameter answer: the origin's handler.
    public init(
        path: String = "", proxy lines: String = "", upstream: String = "", more: String = "", listeners: Int = 1,
        under wrapper: [String] = [], answer: @escaping RecordingOrigin.Handler = { try $0.respond(body: "ok") }
    ) async throws {
        origin = try RecordingOrigin(answer)
        proxy = try await RunningProxy(
            to: origin, path: path, proxy: lines, upstream: upstream, more: more, listeners: listeners, under: wrapper)
    }
}

/// A program of the test's own that serves TLS on loopback, with a certificate of a private CA, and prints its port.
public final class TLSServerProcess: Sendable {
    public let authority: PrivateCA
    public let process: ChildProcess
    public let port: UInt16

    /// - Parameters:
    ///   - command: gets the file of the certificate and that of the key as its next arguments.
    ///   - arguments: further ones behind them.
    public init(_ command: [String], _ arguments: [String] = []) async throws {
        authority = try await PrivateCA()
        let certificate = try await authority.server()
        process = try ChildProcess(command + [certificate.certificateFile, certificate.keyFile] + arguments)
        port = try await process.printedPort()
    }

    deinit { process.kill() }

    /// Everything it has printed.
    public var output: String { process.output }
}

/// A test program that serves TLS on loopback, with a certificate of a private CA, and prints its port.
public final class TLSServerProcess: Sendable {
    public let authority: PrivateCA
    public let process: ChildProcess
    public let port: UInt16

    /// - Parameters:
    ///   - command: program, followed by the paths of the certificate and of the key.
    ///   - arguments: further arguments after these paths.
    public init(_ command: [String], _ arguments: [String] = []) async throws {
        authority = try await PrivateCA()
        let certificate = try await authority.server()
        process = try ChildProcess(command + [certificate.certificateFile, certificate.keyFile] + arguments)
        port = try await process.printedPort()
    }

    deinit { process.kill() }

    /// The program's output so far.
    public var output: String { process.output }
}

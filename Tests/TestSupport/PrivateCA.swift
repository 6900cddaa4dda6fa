/// A certificate authority for tests, in a temporary folder, made with the openssl command. Its keys are P-256.
public struct PrivateCA: Sendable {
    /// A certificate and its key, as PEM files.
    public struct Certificate: Sendable {
        public var certificateFile: String
        public var keyFile: String
        /// Issuer. The files exist as long as this object.
        public let authority: PrivateCA
    }

    private let directory: TemporaryDirectory
    /// The CA's own certificate, a PEM file.
    public let certificateFile: String
    private let keyFile: String

    /// - Parameter days: validity of the CA's own certificate, from now on.
    /// - Throws: `TestFailure` with openssl's message.
    public init(commonName: String = "heimdallr-proxy test CA", days: Int = 365) async throws {
        directory = try TemporaryDirectory()
        certificateFile = directory.path(of: "ca.pem")
        keyFile = directory.path(of: "ca.key")
        try await ChildProcess.output(of: [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "\(days)", "-subj", "/CN=\(commonName)", "-addext", "basicConstraints=critical,CA:TRUE", "-addext",
            "keyUsage=critical,keyCertSign,cRLSign", "-keyout", keyFile, "-out", certificateFile,
        ])
    }

    /// Issues a certificate for a server with these names (`DNS:localhost`, `IP:127.0.0.1`).
    /// - Parameter days: validity from now on; negative for an expired certificate.
    public func server(
        _ names: [String] = ["DNS:localhost", "IP:127.0.0.1"], days: Int = 90
    ) async throws -> Certificate {
        try await issue("server", usage: "serverAuth", names: names, days: days)
    }

    /// Makes a server's self-signed certificate.
    public func selfSigned(_ names: [String] = ["DNS:localhost", "IP:127.0.0.1"]) async throws -> Certificate {
        let file = "self-\(UInt32.random(in: .min ... .max))"
        let certificate = Certificate(
            certificateFile: directory.path(of: "\(file).pem"), keyFile: directory.path(of: "\(file).key"),
            authority: self)
        try await ChildProcess.output(of: [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "90", "-subj", "/CN=server", "-addext", "subjectAltName=\(names.joined(separator: ","))", "-keyout",
            certificate.keyFile, "-out", certificate.certificateFile,
        ])
        return certificate
    }

    /// Issues a certificate for a client.
    public func client(_ name: String = "client", days: Int = 90) async throws -> Certificate {
        try await issue(name, usage: "clientAuth", names: ["DNS:\(name)"], days: days)
    }

    /// Issues a certificate for a client that is good for so many seconds from now on.
    public func client(_ name: String = "client", seconds: Int) async throws -> Certificate {
        let (certificate, request, extensions) = try await request(name, usage: "clientAuth", names: ["DNS:\(name)"])
        let database = try directory.write("", to: "\(name).index")
        let settings = try directory.write(
            """
            [ca]
            default_ca = short
            [short]
            database = \(database)
            new_certs_dir = \(directory.path)
            rand_serial = yes
            default_md = sha256
            policy = any
            [any]
            commonName = supplied
            """, to: "\(name).cnf")
        let command = #"openssl ca -batch -notext -enddate $(date -u -d "+$0 seconds" +%Y%m%d%H%M%SZ) "$@""#
        try await ChildProcess.output(of: [
            "sh", "-c", command, "\(seconds)", "-config", settings, "-cert", certificateFile, "-keyfile", keyFile,
            "-in", request,
            "-extfile", extensions, "-out", certificate.certificateFile,
        ])
        return certificate
    }

    private func request(
        _ subject: String, usage: String, names: [String]
    ) async throws -> (Certificate, request: String, extensions: String) {
        let file = "\(subject)-\(UInt32.random(in: .min ... .max))"
        let certificate = Certificate(
            certificateFile: directory.path(of: "\(file).pem"), keyFile: directory.path(of: "\(file).key"),
            authority: self)
        let request = directory.path(of: "\(file).csr")
        try await ChildProcess.output(of: [
            "openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
            "/CN=\(subject)", "-keyout", certificate.keyFile, "-out", request,
        ])
        let extensions = try directory.write(
            "subjectAltName=\(names.joined(separator: ","))\nextendedKeyUsage=\(usage)\n", to: "\(file).ext")
        return (certificate, request, extensions)
    }

    private func issue(_ subject: String, usage: String, names: [String], days: Int) async throws -> Certificate {
        let (certificate, request, extensions) = try await request(subject, usage: usage, names: names)
        try await ChildProcess.output(of: [
            "openssl", "x509", "-req", "-in", request, "-CA", certificateFile, "-CAkey", keyFile,
            "-set_serial", "\(UInt32.random(in: 1 ... .max))", "-days", "\(days)", "-extfile", extensions, "-out",
            certificate.certificateFile,
        ])
        return certificate
    }
}

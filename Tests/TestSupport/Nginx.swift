/// nginx in the foreground, on free loopback ports: plain HTTP/1.1; with a certificate also TLS, HTTP/1.1 and HTTP/2.
public final class Nginx: Sendable {
    public let httpPort: UInt16
    /// 0 without a certificate.
    public let httpsPort: UInt16
    private let certificate: PrivateCA.Certificate?
    private let child: ChildProcess
    private let directory: TemporaryDirectory

    /// Configuration that answers every request with its fields, one `name: value` in each line.
    public static let sayWhatArrived = #"""
        location / {
            default_type text/plain;
            return 200 "request: $request\nprotocol: $server_protocol\nhost: $http_host\nauthorization: $http_authorization\nvia: $http_via\nuser-agent: $http_user_agent\naccept: $http_accept\nclient-certificate: $ssl_client_s_dn\nserver-name: $ssl_server_name\n";
        }
        """#

    /// - Parameters:
    ///   - certificate: for the TLS port; `nil` for no TLS port.
    ///   - clientCA: PEM file of a CA; clients must then show a certificate of this CA.
    ///   - http2: whether the TLS port offers HTTP/2.
    ///   - isKnown: whether the plain port speaks only HTTP/2, with prior knowledge.
    ///   - locations: content of the `server` block. `FOLDER` becomes nginx's own folder.
    /// - Throws: `TestFailure` with nginx's output when the start fails.
    public init(
        certificate: PrivateCA.Certificate? = nil, clientCA: String? = nil, locations: String = Nginx.sayWhatArrived,
        http2: Bool = true, isKnown: Bool = false
    ) async throws {
        self.certificate = certificate
        // A port that was free a moment ago may be taken by the time nginx binds it.
        var lastFailure: any Error = TestFailure("nginx was not tried")
        for _ in 0..<5 {
            do {
                let directory = try TemporaryDirectory()
                let http = try freePort()
                let https = certificate == nil ? 0 : try freePort()
                let configuration = Nginx.configuration(
                    folder: directory.path, http: http, https: https, certificate: certificate, clientCA: clientCA,
                    locations: locations, http2: http2, isKnown: isKnown)
                let child = try ChildProcess(
                    [
                        "nginx", "-p", directory.path, "-e", "stderr", "-c",
                        try directory.write(configuration, to: "nginx.conf"),
                    ], environment: ["PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"])
                try await Nginx.waitUntilUp(child, ports: https == 0 ? [http] : [http, https])
                (httpPort, httpsPort, self.child, self.directory) = (http, https, child, directory)
                return
            } catch { lastFailure = error }
        }
        throw lastFailure
    }

    /// Starts nginx with a TLS port, whose certificate is issued by a private CA: `authority`.
    /// - Parameter asksClients: whether clients must show a certificate of the same CA.
    public static func secure(
        _ names: [String] = ["DNS:localhost", "IP:127.0.0.1"], asksClients: Bool = false,
        locations: String = Nginx.sayWhatArrived
    ) async throws -> Nginx {
        let authority = try await PrivateCA()
        return try await Nginx(
            certificate: try await authority.server(names), clientCA: asksClients ? authority.certificateFile : nil,
            locations: locations)
    }

    deinit { child.kill() }

    /// The CA of the TLS port's certificate.
    public var authority: PrivateCA {
        guard let certificate else { fatalError("this nginx has no TLS port") }
        return certificate.authority
    }

    /// One line for each finished request: `METHOD TARGET PROTOCOL STATUS AUTHORIZATION`.
    public func accessLog() throws -> String { try directory.read("access.log") }

    /// nginx's error log so far.
    public var errorLog: String { child.errors }

    /// Stops nginx and breaks its connections.
    public func stop() async throws { try await child.stop() }

    static func waitUntilUp(_ child: ChildProcess, ports: [UInt16]) async throws {
        for port in ports {
            try await eventually("nginx listens") {
                if child.ending != nil { throw TestFailure(child.transcript) }
                guard let connection = try? await RawClient.connect(port: port) else { return false }
                connection.close()
                return true
            }
        }
        if child.ending != nil { throw TestFailure(child.transcript) }
    }

    private static func configuration(
        folder: String, http: UInt16, https: UInt16, certificate: PrivateCA.Certificate?, clientCA: String?,
        locations: String, http2: Bool, isKnown: Bool
    ) -> String {
        var tls = ""
        if let certificate {
            tls = """
                        listen 127.0.0.1:\(https) ssl\(http2 ? " http2" : "");
                        ssl_certificate \(certificate.certificateFile);
                        ssl_certificate_key \(certificate.keyFile);
                """
            if let clientCA { tls += "\nssl_verify_client on;\nssl_client_certificate \(clientCA);" }
        }
        return """
            daemon off;
            master_process off;
            pid \(folder)/nginx.pid;
            error_log stderr notice;
            events { worker_connections 1024; }
            http {
                client_body_temp_path \(folder)/body;
                proxy_temp_path \(folder)/proxy;
                fastcgi_temp_path \(folder)/fastcgi;
                uwsgi_temp_path \(folder)/uwsgi;
                scgi_temp_path \(folder)/scgi;
                client_max_body_size 0;
                merge_slashes off;
                log_format received '$request $status $http_authorization';
                access_log \(folder)/access.log received;
                server {
                    listen 127.0.0.1:\(http)\(isKnown ? " http2" : "");
                    \(tls)
                    \(locations.replacing("FOLDER", with: folder))
                }
            }
            """
    }
}

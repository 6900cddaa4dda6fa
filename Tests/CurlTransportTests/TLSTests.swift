import CurlTransport
import TestSupport
import Testing

@Suite("TLS is always checked", .timeLimit(.minutes(1)))
struct TLSTests {
    @Test func `a call to a server of an unknown authority fails, and nothing is sent`() async throws {
        let nginx = try await Nginx.secure()
        let pool = try Calls()
        let record = try await pool.send(Request(.secure(nginx.httpsPort)))
        #expect(record.error?.kind == .tlsCertificate)
        #expect(try nginx.accessLog() == "")
    }

    @Test func `a certificate of a CA that was named, alone or beside the system's, is trusted`() async throws {
        let nginx = try await Nginx.secure()
        let file = nginx.authority.certificateFile
        for anchors in [PoolOptions.TrustAnchors.only(file: file), .systemAnd(file: file)] {
            let pool = try Calls { $0.trustAnchors = anchors }
            for host in ["localhost", "127.0.0.1"] {
                #expect(try await pool.send(Request(.secure(nginx.httpsPort, host: host))).error == nil)
            }
        }
        let other = try await PrivateCA()
        let pool = try Calls { $0.trustAnchors = .only(file: other.certificateFile) }
        #expect(try await pool.send(Request(.secure(nginx.httpsPort))).error?.kind == .tlsCertificate)
    }

    @Test func `a call to a server with a certificate for another name fails, and nothing is sent`() async throws {
        let nginx = try await Nginx.secure(["DNS:other.test"])
        let file = nginx.authority.certificateFile
        let pool = try Calls { $0.trustAnchors = .only(file: file) }
        let port = nginx.httpsPort
        #expect(try await pool.send(Request(.secure(port))).error?.kind == .tlsCertificate)
        #expect(try await pool.send(Request(.secure(port, host: "127.0.0.1"))).error?.kind == .tlsCertificate)
        // What is dialled stays what it was; the name is for SNI and the certificate.
        let named = try await pool.send(Request(.secure(port, host: "127.0.0.1", serverName: "other.test")))
        #expect(named.error == nil)
        #expect(named.text.contains("server-name: other.test\n"))
        #expect(named.text.contains("host: 127.0.0.1:\(port)\n"))
        let wrong = try await pool.send(Request(.secure(port, host: "127.0.0.1", serverName: "third.test")))
        #expect(wrong.error?.kind == .tlsCertificate)
    }

    @Test func `a call uses no connection that was made for another name`() async throws {
        let nginx = try await Nginx.secure(["DNS:one.test", "DNS:two.test"])
        let file = nginx.authority.certificateFile
        let pool = try Calls { $0.trustAnchors = .only(file: file) }
        for name in ["one.test", "two.test", "one.test"] {
            let origin = Origin.secure(nginx.httpsPort, host: "127.0.0.1", serverName: name)
            #expect(try await pool.send(Request(origin)).text.contains("server-name: \(name)\n"))
        }
    }

    @Test func `a call shows its client certificate where it is asked for`() async throws {
        let nginx = try await Nginx.secure(asksClients: true)
        let file = nginx.authority.certificateFile
        let certificate = try await nginx.authority.client("billing")
        let port = nginx.httpsPort
        let with = try Calls {
            $0.trustAnchors = .only(file: file)
            $0.certificateFile = certificate.certificateFile
            $0.keyFile = certificate.keyFile
        }
        #expect(try await with.send(Request(.secure(port))).text.contains("client-certificate: CN=billing\n"))
        let without = try Calls { $0.trustAnchors = .only(file: file) }
        let record = try await without.send(Request(.secure(port)))
        #expect(record.error != nil || record.status == 400)
    }

    @Test func `a file of TLS that can't be used is named as a fault of this machine`() async throws {
        let nginx = try await Nginx.secure()
        let file = nginx.authority.certificateFile
        let certificate = try await nginx.authority.client()
        let other = try await nginx.authority.client("other")
        let changes: [@Sendable (inout PoolOptions) -> Void] = [
            { $0.trustAnchors = .only(file: "/does/not/exist") },
            {
                $0.trustAnchors = .only(file: file)
                $0.certificateFile = "/does/not/exist"
                $0.keyFile = certificate.keyFile
            },
            {
                $0.trustAnchors = .only(file: file)
                $0.certificateFile = certificate.certificateFile
                $0.keyFile = other.keyFile
            },
            {
                $0.trustAnchors = .only(file: file)
                $0.certificateFile = certificate.certificateFile
                $0.keyFile = certificate.certificateFile
            },
        ]
        for change in changes {
            let pool = try Calls(change)
            #expect(try await pool.send(Request(.secure(nginx.httpsPort))).error?.kind == .tlsConfiguration)
        }
    }
}

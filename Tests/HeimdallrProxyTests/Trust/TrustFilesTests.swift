import Foundation
import Glibc
import TestSupport
import Testing

@testable import HeimdallrProxy

@Suite("files of trust", .timeLimit(.minutes(2)))
struct TrustFilesTests {
    private let directory: TemporaryDirectory
    private let root: PrivateCA
    private let former: PrivateCA
    private let folder: String

    init() async throws {
        directory = try TemporaryDirectory()
        (root, former) = (try await PrivateCA(), try await PrivateCA())
        folder = directory.path(of: "trust")
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: directory.path)
    }

    private func files(systemBundle: String? = nil) throws -> TrustFiles {
        try TrustFiles(roots: bytes(root.certificateFile), folder: folder, systemBundle: systemBundle)
    }

    private func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    private func names() throws -> Set<String> { Set(try FileManager.default.contentsOfDirectory(atPath: folder)) }

    private static let defaults: Set = [
        "bundle.pem", "roots.pem", "truststore.jks", "wgetrc", "wget2rc", "apt.conf", "php",
    ]

    /// Others may enter the folder, as they may enter its parent.
    @Test func `trust files can be changed or listed by this user only, and are removed`() throws {
        let files = try files(systemBundle: former.certificateFile)
        try files.writeDefaults()
        // Nothing else is left of the writing.
        #expect(try names() == Self.defaults)
        #expect(try mode(folder) == 0o711 && mode(folder + "/php") == 0o700)
        let certificates = ["bundle.pem", "roots.pem", "truststore.jks"]
        for name in Self.defaults where name != "php" {
            #expect(try mode("\(folder)/\(name)") == (certificates.contains(name) ? 0o644 : 0o600), "\(name)")
        }
        #expect(try bytes(folder + "/bundle.pem") == bytes(former.certificateFile) + bytes(root.certificateFile))
        #expect(try bytes(folder + "/roots.pem") == bytes(root.certificateFile))
        try files.writeDefaults()
        #expect(try names() == Self.defaults)
        // As `exec` finds them.
        let found = try #require(try TrustFiles.written(in: folder))
        #expect(try found.variables(for: [:]) == files.variables(for: [:]))
        TrustFiles.remove(files.folder)
        #expect(try TrustFiles.written(in: folder) == nil)
        #expect(!FileManager.default.fileExists(atPath: folder))
    }

    @Test func `exactly the variables of known programs get a value`() throws {
        let values = try files().variables(for: ["SSL_CERT_FILE": "", "OTHER": "/x"])
        #expect(
            Set(values.keys) == [
                "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
                "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "npm_config_cafile", "DENO_CERT",
                "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "PERL_LWP_SSL_CA_FILE", "WGETRC", "WGET2RC",
                "APT_CONFIG", "PHP_INI_SCAN_DIR", "JAVA_TOOL_OPTIONS", "HTTPLIB2_CA_CERTS",
                "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "NIX_SSL_CERT_FILE",
            ])
        #expect(values["SSL_CERT_FILE"] == "\(folder)/bundle.pem" && values["DENO_CERT"] == "\(folder)/roots.pem")
        #expect(values["PHP_INI_SCAN_DIR"] == ":\(folder)/php")
        // No file of its own is needed.
        #expect(try names().isEmpty)
    }

    @Test func `a bundle of the parent's variables is the base for the programs that would have read it`() throws {
        let files = try files()
        let values = try files.variables(for: [
            "SSL_CERT_FILE": former.certificateFile, "NODE_EXTRA_CA_CERTS": former.certificateFile,
            "JAVA_TOOL_OPTIONS": "-Xmx64m", "PHP_INI_SCAN_DIR": "/a:/b",
        ])
        let both = try bytes(former.certificateFile) + bytes(root.certificateFile)
        for name in ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "NODE_EXTRA_CA_CERTS"] {
            #expect(try bytes(#require(values[name])) == both, "\(name)")
        }
        #expect(values["GIT_SSL_CAINFO"] == "\(folder)/bundle.pem")
        #expect(values["PHP_INI_SCAN_DIR"] == "/a:/b:\(folder)/php")
        #expect(values["JAVA_TOOL_OPTIONS"] == "-Xmx64m -Djavax.net.ssl.trustStore=\(folder)/truststore.jks")
        // Again, and within itself, nothing more is written or changed.
        let written = try names()
        #expect(try files.variables(for: ["SSL_CERT_FILE": former.certificateFile])["PIP_CERT"] == values["PIP_CERT"])
        #expect(try files.variables(for: values).isEmpty)
        #expect(try names() == written)
        let own = try files.variables(for: ["JAVA_TOOL_OPTIONS": "-Djavax.net.ssl.trustStore=/x"])
        #expect(own["JAVA_TOOL_OPTIONS"] == nil)
    }

    @Test func `a folder of certificates is a base, and files without certificates stay out`() throws {
        let certificates = directory.path(of: "certificates")
        try FileManager.default.createDirectory(atPath: certificates, withIntermediateDirectories: false)
        let certificate = try String(contentsOfFile: former.certificateFile, encoding: .utf8)
        try directory.write(
            "remark\r\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
                + certificate.replacing("\n", with: " \t\r\n"), to: "certificates/a.pem")
        try directory.write(certificate, to: "certificates/b.pem")
        try directory.write(
            certificate.replacing("MII", with: "AAA") + "-----BEGIN CERTIFICATE-----\n\n-----END CERTIFICATE-----\n"
                + "-----BEGIN CERTIFICATE-----\nAAAA", to: "certificates/c.pem")
        let values = try files().variables(for: ["REQUESTS_CA_BUNDLE": certificates])
        let both = try bytes(former.certificateFile) + bytes(root.certificateFile)
        #expect(try bytes(#require(values["REQUESTS_CA_BUNDLE"])) == both)
        let none = try files().variables(for: ["SSL_CERT_FILE": "/no/such/file"])
        #expect(try bytes(#require(none["SSL_CERT_FILE"])) == bytes(root.certificateFile))
    }

    @Test func `settings of the user stay, and their bundle is the base`() throws {
        try directory.write("quiet = on\nCA-Certificate=\(former.certificateFile)\ncertificate = /x\n", to: ".wgetrc")
        let values = try files().variables(for: ["HOME": directory.path])
        let text = String(decoding: try bytes(#require(values["WGETRC"])), as: UTF8.self)
        #expect(text.hasPrefix("quiet = on\nCA-Certificate=\(former.certificateFile)\n"))
        let last = try #require(text.split(separator: "\n").last)
        #expect(last.hasPrefix("ca_certificate = \(folder)/"))
        let both = try bytes(former.certificateFile) + bytes(root.certificateFile)
        #expect(try bytes(String(last.dropFirst("ca_certificate = ".count))) == both)
        #expect(try mode(#require(values["WGETRC"])) == 0o600)
        #expect(values["WGET2RC"] == "\(folder)/wget2rc")
    }

    @Test func `apt gets its own settings and ours`() async throws {
        let own = try directory.write("APT::Get::Assume-Yes \"true\";\n// remark", to: "apt.conf")
        let value = try #require(files().variables(for: ["APT_CONFIG": own])["APT_CONFIG"])
        let dump = try await ChildProcess.output(of: ["apt-config", "dump"], environment: ["APT_CONFIG": value])
        #expect(dump.contains("APT::Get::Assume-Yes \"true\";"))
        #expect(dump.contains("Acquire::https::CaInfo \"\(folder)/bundle.pem\";"))
    }

    /// apt would refuse every server.
    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `root's apt keeps its trust where its own user can't read the certificates`() throws {
        #expect(try files().variables(for: [:])["APT_CONFIG"] == "\(folder)/apt.conf")
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory.path)
        let values = try files().variables(for: [:])
        #expect(values["APT_CONFIG"] == nil && values.count == TrustVariable.all.count - 1)
    }

    @Test func `folders that programs can't read, or others can change, are refused`() throws {
        let pem = try bytes(root.certificateFile)
        for name in ["a b", "a:b", "a\"b", "a\nb", "a;b"] {
            #expect(throws: TrustFiles.Fault.self) {
                try TrustFiles(roots: pem, folder: directory.path(of: name), systemBundle: nil)
            }
        }
        let open = directory.path(of: "open")
        try FileManager.default.createDirectory(
            atPath: open, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o777])
        #expect(throws: TrustFiles.Fault.self) { try TrustFiles(roots: pem, folder: open, systemBundle: nil) }
        #expect(throws: TrustFiles.Fault.self) { try TrustFiles(roots: [], folder: folder, systemBundle: nil) }
    }

    @Test func `Java's own tool reads its file, and finds it whole`() async throws {
        try files(systemBundle: former.certificateFile).writeDefaults()
        let listed = try await ChildProcess.output(of: [
            "keytool", "-list", "-keystore", "\(folder)/truststore.jks", "-storepass", "changeit",
        ])
        #expect(listed.contains("JKS") && listed.contains("2 entries"), "\(listed)")
    }

    @Test func `the system has a bundle of more than 50 authorities`() throws {
        let path = try #require(CertificateBundle.systemPath)
        var bundle = CertificateBundle()
        bundle.add(at: path)
        let count = try String(contentsOfFile: path, encoding: .utf8).ranges(of: "BEGIN CERTIFICATE").count
        #expect(bundle.certificates.count == count && count > 50)
    }
}

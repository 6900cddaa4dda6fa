import Configuration
import TestSupport
import Testing

@Suite("Commands find the running proxy by the admin section")
struct AdminSectionTests {
    @Test(
        "the admin section of an invalid file is read alone, wherever the fault is",
        arguments: [
            "admin:\n  listen: 127.0.0.1:9000\n  socket: /run/a.sock\nupstreams:\n\t- x\n",
            "proxy: [\nadmin:\n  # ours\n\n  listen: 127.0.0.1:9000\n  socket: /run/a.sock\nlog: {level: info}\n",
            "proxy: {listen: 'x}\r\nadmin: {listen: \"127.0.0.1:9000\", socket: /run/a.sock}\r\nlog: {}\r\n",
            "log: &a {}\nadmin: {listen: \"127.0.0.1:9000\", socket: /run/a.sock}\n",
            "admin: {listen: \"127.0.0.1:9000\", socket: /run/a.sock}\nproxy: {threads: many}\n",
            "admin:\n  listen: 127.0.0.1:9000\n  lissen: [\n  socket: /run/a.sock\n  token: 'x\n",
        ])
    func alone(_ yaml: String) throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(yaml, to: "c.yaml")
        let admin = try #require(try Configuration.adminSettings(file: file, environment: [:]))
        #expect(admin.listen == .tcp(host: "127.0.0.1", port: 9000))
        #expect(admin.socket == "/run/a.sock")
    }

    @Test func `a fault of one key leaves the others of the section, and a path starts at the file's folder`() throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write("admin: {listen: nowhere, socket: a.sock}\n", to: "c.yaml")
        let admin = try #require(try Configuration.adminSettings(file: file, environment: [:]))
        #expect(admin.socket == folder.path(of: "a.sock"))
        #expect(admin.listen == .tcp(host: "127.0.0.1", port: 8081))
    }

    @Test func `an invalid file without the section, or with one that is no YAML, is refused`() throws {
        let folder = try TemporaryDirectory()
        for yaml in ["proxy: [\n", "proxy: [\nadmin: [\n", "admin: {socket: 'x\n"] {
            let file = try folder.write(yaml, to: "c.yaml")
            #expect(throws: ConfigurationError.self, "\(yaml)") {
                try Configuration.adminSettings(file: file, environment: [:])
            }
        }
        let file = try folder.write("log: {level: info}\n", to: "c.yaml")
        #expect(try Configuration.adminSettings(file: file, environment: [:]) == nil)
    }
}

@testable import Configuration
import Testing

@testable import HeimdallrProxy

@Suite struct ChildEnvironmentTests {
    @Test func `variables that the configuration took are withheld, and those that every program needs are left`() {
        var configuration = Configuration()
        configuration.variables = ["API_KEY", "HOME", "XDG_RUNTIME_DIR", "LC_ALL", "CREDENTIALS_DIRECTORY"]
        configuration.proxy.users = ["alice": .environment(name: "USER")]
        var client = ClientSettings(name: "a")
        client.assertion = .secret(.environment(name: "ASSERTION"))
        client.exchange = ExchangeSettings(
            subject: .secret(.environment(name: "SUBJECT")), subjectType: "", actor: .environment(name: "ACTOR"),
            actorType: "")
        client.clientKey = .environment(name: "LANG")
        configuration.clients = [client]
        let environment = [
            "ASSERTION": "1", "SUBJECT": "2", "ACTOR": "3", "API_KEY": "1", "HOME": "/root", "XDG_RUNTIME_DIR": "/run",
            "LC_ALL": "C", "LANG": "a key for once", "CREDENTIALS_DIRECTORY": "/c",
            "USER": "a secret for once", "HEIMDALLR_CLIENT_SECRT": "misspelled", "PATH": "/bin", "OTHER": "stays",
        ]
        let left = ChildEnvironment.of(environment, configuration)
        #expect(Set(left.keys) == ["HOME", "XDG_RUNTIME_DIR", "LC_ALL", "PATH", "OTHER"])
    }
}

@Suite struct UnknownVerbTests {
    @Test(arguments: ["config.yaml", "my.yml", "/etc/heimdallr/config"])
    func `a file in place of a command is taken for one of serve`(file: String) {
        #expect(HeimdallrProxyCommand.unknownVerb(file)?.contains("did you mean \"serve --config \(file)\"?") == true)
    }

    @Test func `a command of a group is known, or another one is named`() {
        let wrong = HeimdallrProxyCommand.unknownVerb("store", "mvoe")
        #expect(wrong?.contains("no command \"store mvoe\"; did you mean \"move\"?") == true, "\(wrong ?? "")")
        #expect(HeimdallrProxyCommand.unknownVerb("store", "xyz")?.contains("write init, status, move") == true)
        #expect(HeimdallrProxyCommand.unknownVerb("store", "move") == nil)
        #expect(HeimdallrProxyCommand.unknownVerb("store", "--help") == nil)
        #expect(HeimdallrProxyCommand.unknownVerb("token", "billing") == nil)
    }
}

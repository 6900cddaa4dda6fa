import Testing

@testable import Configuration

@Suite("a configuration may be large", .timeLimit(.minutes(2)))
struct LargeConfigurationTests {
    @Test func `ten thousand clients, each with an upstream, fit into a file`() throws {
        let folder = try TemporaryFolder()
        let secret = try folder.write("secret", "s")
        var text = "clients:\n"
        for number in 0..<10_000 {
            text += """
                  client-\(number):
                    token_endpoint: https://login.example.com/tenant-\(number)/oauth2/token
                    client_id: client-\(number)
                    client_secret: {file: \(secret)}

                """
        }
        text += "upstreams:\n"
        for number in 0..<10_000 {
            text += """
                  - host: api-\(number).example.com
                    url: https://api-\(number).example.com
                    client: client-\(number)

                """
        }
        let file = try folder.write("large.yaml", text)
        let (configuration, warnings) = try Configuration.load(file: file, environment: [:])
        #expect(configuration.clients.count == 10_000)
        #expect(configuration.upstreams.count == 10_000)
        #expect(warnings.map(\.message) == [])
    }

    @Test func `among many upstreams, those that match the same requests are found`() throws {
        var text = "proxy: {unmatched: reject}\nupstreams:\n"
        for number in 0..<300 { text += "  - {host: 'h\(number).example', paths: [/a, /b/\(number)]}\n" }
        text += "  - {host: 'h7.example', paths: [/c, /a/]}\n"
        let error = #expect(throws: ConfigurationError.self) {
            try Configuration.parse(yaml: text, file: "c.yaml", environment: [:])
        }
        let messages = error?.problems.map(\.message) ?? []
        #expect(messages.count == 1)
        #expect(messages.first?.contains("upstreams[300]: h7.example matches the same requests") == true, "\(messages)")
    }
}

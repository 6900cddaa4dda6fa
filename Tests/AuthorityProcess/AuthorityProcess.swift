// A process of its own for tests of the certificate authority: issues certificates for the hosts of its arguments, prints
// them in base64, and holds them until its standard input ends.
//
//     AuthorityProcess HOST…
//
// For `*.DOMAIN` it holds an intermediate, which has signed for `a.DOMAIN`.
import Cryptography
import Glibc
import WireText

@main
enum AuthorityProcess {
    static func main() throws {
        let hosts = CommandLine.arguments.dropFirst()
        let issued = try CertificateAuthority.issue(for: hosts.filter { !$0.hasPrefix("*.") })
        for root in issued.roots { print("root", Base64.encode(root)) }
        for leaf in issued.leaves.values { print("leaf", Base64.encode(leaf.chain[0])) }
        let domains = hosts.filter { $0.hasPrefix("*.") }.map { String($0.dropFirst(2)) }
        let intermediate = domains.isEmpty ? nil : try SigningIntermediate(for: domains)
        if let intermediate {
            let leaf = try intermediate.certificate(for: "a.\(domains[0])")
            print("root", Base64.encode(intermediate.root))
            print("intermediate", Base64.encode(leaf.chain[1]))
        }
        print("done")
        _ = fflush(nil)
        while readLine() != nil {}
        withExtendedLifetime((issued, intermediate)) {}
    }
}

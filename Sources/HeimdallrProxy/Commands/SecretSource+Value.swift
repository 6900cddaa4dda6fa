import Configuration
import Cryptography

extension SecretSource {
    /// The current value for a check, which runs no command.
    /// - Returns: `nil` for a command and for a variable that is not set.
    func value(_ environment: [String: String]) throws(CryptographyError) -> SecretBytes? {
        switch self {
        case .literal(let text): SecretBytes(Array(text.utf8))
        case .environment(let name): environment[name].map { SecretBytes(Array($0.utf8)) }
        case .command: nil
        case .file(let path): try SecretFile.read(path: path)
        }
    }
}

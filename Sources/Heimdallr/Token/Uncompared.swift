/// A property that `==` ignores, because it adds nothing to the content of a value.
@propertyWrapper
package struct Uncompared<Value: Sendable>: Sendable, Equatable {
    package var wrappedValue: Value

    package init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

    package static func == (_: Uncompared, _: Uncompared) -> Bool { true }
}

/// A property that does not count when values are compared: it adds nothing to their content.
@propertyWrapper
package struct Uncompared<Value: Sendable>: Sendable, Equatable {
    package var wrappedValue: Value

    package init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

    package static func == (_: Uncompared, _: Uncompared) -> Bool { true }
}

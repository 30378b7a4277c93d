/// Something that can be switched on and off while the app runs.
///
/// Each source of toggles has a type of its own, such as ``InternalToggle``, and a data store that knows that type.
public protocol ToggleType: Hashable, Sendable {}

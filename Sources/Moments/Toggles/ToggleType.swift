/// A switch that can be turned on and off while the app runs.
///
/// Each source of toggles has its own type, such as ``InternalToggle``, and a data store for that type.
public protocol ToggleType: Hashable, Sendable {}

/// A switch that can be turned on and off while the app runs.
///
/// Each type of toggles, such as ``InternalToggle``, has its own data store.
public protocol ToggleType: Hashable, Sendable {}

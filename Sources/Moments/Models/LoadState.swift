/// The state of a value that is loaded from elsewhere.
///
/// An existing value is kept when another load begins, fails or is cancelled. The table shows only the value of each
/// state, without the error of `failed`; a dash means that the state doesn't change.
///
/// | | ``beginLoading()`` | ``succeed(_:)`` | ``fail(_:)`` | ``cancel()`` | ``receive(_:)`` |
/// | --- | --- | --- | --- | --- | --- |
/// | `idle` | `loading(nil)` | `loaded(new)` | `failed(nil)` | – | `loaded(new)` |
/// | `loading(nil)` | – | `loaded(new)` | `failed(nil)` | `idle` | `loading(new)` |
/// | `loading(old)` | – | `loaded(new)` | `failed(old)` | `loaded(old)` | `loading(new)` |
/// | `loaded(old)` | `loading(old)` | `loaded(new)` | `failed(old)` | – | `loaded(new)` |
/// | `failed(nil)` | `loading(nil)` | `loaded(new)` | `failed(nil)` | – | `failed(new)` |
/// | `failed(old)` | `loading(old)` | `loaded(new)` | `failed(old)` | – | `failed(new)` |
public enum LoadState<Value, Failure: Error> {
  /// There is neither a value nor an error, and no load is in progress.
  case idle

  /// The value is being loaded; `previous` is the existing value, to show in the meantime.
  case loading(previous: LoadedValue<Value>?)

  /// There is a value, and no load is in progress.
  case loaded(LoadedValue<Value>)

  /// The last load failed; `previous` is the existing value, which can still be shown.
  case failed(Failure, previous: LoadedValue<Value>?)

  /// The newest value with the time from which its age counts, regardless of the outcome of later loads.
  public var loadedValue: LoadedValue<Value>? {
    switch self {
    case .idle: nil
    case .loaded(let loaded): loaded
    case .loading(let previous), .failed(_, let previous): previous
    }
  }

  /// The newest value, regardless of the outcome of later loads.
  public var value: Value? { loadedValue?.value }

  /// Whether the value is being loaded.
  public var isLoading: Bool {
    if case .loading = self { true } else { false }
  }

  /// The error of the last load; `nil` if it didn't fail, or if another load has begun since.
  public var failure: Failure? {
    if case .failed(let failure, _) = self { failure } else { nil }
  }

  /// Records that a load begins.
  public mutating func beginLoading() {
    self = .loading(previous: loadedValue)
  }

  /// Records that a load succeeded.
  public mutating func succeed(_ loaded: LoadedValue<Value>) {
    self = .loaded(loaded)
  }

  /// Records that a load failed, and keeps the existing value.
  public mutating func fail(_ failure: Failure) {
    self = .failed(failure, previous: loadedValue)
  }

  /// Records that the load in progress, if any, was cancelled.
  ///
  /// An existing value then counts as loaded, even if the load before that one failed.
  public mutating func cancel() {
    guard case .loading(let previous) = self else { return }
    self = previous.map { .loaded($0) } ?? .idle
  }

  /// Records a value that didn't come from a load, such as a stored or changed value.
  ///
  /// A load in progress stays in progress, and a failure is kept.
  public mutating func receive(_ loaded: LoadedValue<Value>) {
    switch self {
    case .idle, .loaded: self = .loaded(loaded)
    case .loading: self = .loading(previous: loaded)
    case .failed(let failure, _): self = .failed(failure, previous: loaded)
    }
  }
}

extension LoadState: Sendable where Value: Sendable {}
extension LoadState: Equatable where Value: Equatable, Failure: Equatable {}
extension LoadState: Hashable where Value: Hashable, Failure: Hashable {}

/// What there is to show of a value that is loaded from elsewhere.
///
/// A value that was there is never lost because a later load has begun, failed or was cancelled.
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
  /// No load has begun yet.
  case idle

  /// The value is being loaded; `previous` is the one there was before, to show meanwhile.
  case loading(previous: LoadedValue<Value>?)

  /// The value is there, and nothing is being loaded.
  case loaded(LoadedValue<Value>)

  /// The last load failed; `previous` is the value there was before, to show all the same.
  case failed(Failure, previous: LoadedValue<Value>?)

  /// The newest value there is, with its age, whatever became of the loads after it.
  public var loadedValue: LoadedValue<Value>? {
    switch self {
    case .idle: nil
    case .loaded(let loaded): loaded
    case .loading(let previous), .failed(_, let previous): previous
    }
  }

  /// The newest value there is, whatever became of the loads after it.
  public var value: Value? { loadedValue?.value }

  /// Whether the value is being loaded.
  public var isLoading: Bool {
    if case .loading = self { true } else { false }
  }

  /// Why the last load failed; `nil` if it didn't, or if another one has begun.
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

  /// Records that a load failed: the value from before stays.
  public mutating func fail(_ failure: Failure) {
    self = .failed(failure, previous: loadedValue)
  }

  /// Records that the load was cancelled: the state from before is restored.
  public mutating func cancel() {
    guard case .loading(let previous) = self else { return }
    self = previous.map { .loaded($0) } ?? .idle
  }

  /// Records a value that no load brought: it was stored before, or it was changed.
  ///
  /// A load in flight stays in flight, and a failure stays.
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

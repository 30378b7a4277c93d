// swift-format-ignore-file

public import DarwinDispatch

public struct NWPath: Equatable, Sendable {
  public enum Status: Equatable, Sendable { case satisfied, unsatisfied, requiresConnection }
  public let status: NWPath.Status
}

// Darwin's class is assumed to be `Sendable`, because no published declaration was at hand.
public final class NWPathMonitor: Sendable {
  @preconcurrency public var pathUpdateHandler: (@Sendable (_ newPath: NWPath) -> Void)? {
    get { fatalError() }
    set { fatalError() }
  }
  public init() {}
  public func start(queue: DispatchQueue) {}
  public func cancel() {}
}

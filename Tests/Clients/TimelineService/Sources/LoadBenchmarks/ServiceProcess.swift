internal import DataStore
internal import Foundation
internal import Hummingbird
internal import Moments
internal import TimelineServer

/// The services that are compared.
enum ServiceKind: String, CaseIterable, Codable, Sendable {
  case files, memory, usual

  var label: String {
    switch self {
    case .files: "MomentsRepo, files"
    case .memory: "MomentsRepo, memory"
    case .usual: "AsyncStreams"
    }
  }

  /// Whether a browser never shows an older timeline after a newer one, even if likes overlap.
  var keepsOrder: Bool { self != .usual }
}

/// A service in a process of its own, so that its memory can be measured.
///
/// The process runs this executable with `--service` and a description of the service.
final class ServiceProcess {
  static let flag = "--service"

  private struct Description: Codable {
    let kind: ServiceKind
    let port: Int
    let timelines: Int
    let folder: URL
  }

  let kind: ServiceKind
  let port: Int
  private let process = Process()

  init(_ kind: ServiceKind, timelines: Int, folder: URL) throws {
    self.kind = kind
    port = try findFreePort()
    let description = Description(kind: kind, port: port, timelines: timelines, folder: folder)
    process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = [Self.flag, String(decoding: try JSONEncoder().encode(description), as: UTF8.self)]
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  /// Kills the process, because ``UsualService`` doesn't end its streams at a graceful shutdown.
  func stop() {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// The resident memory in bytes, which is a multiple of the page size.
  func residentMemory() throws -> Int {
    guard let statm = FileManager.default.contents(atPath: "/proc/\(process.processIdentifier)/statm"),
      let pages = String(decoding: statm, as: UTF8.self).split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { throw BenchmarkError.unreadableResidentMemory }
    return pages * sysconf(Int32(_SC_PAGESIZE))
  }

  /// The processor time that the service has used.
  func processorTime() throws -> Duration { try Self.processorTime(ofProcess: "\(process.processIdentifier)") }

  /// The processor time that this process, which makes the load, has used.
  static func ownProcessorTime() throws -> Duration { try processorTime(ofProcess: "self") }

  private static func processorTime(ofProcess entry: String) throws -> Duration {
    // Splits the fields only after the program's name, which is in parentheses and may contain spaces. The name is the
    // second field of the file, so fields 14 and 15, the user and the system time, have the indices 11 and 12.
    guard let stat = FileManager.default.contents(atPath: "/proc/\(entry)/stat"),
      let fields = String(decoding: stat, as: UTF8.self).split(separator: ")").last?.split(separator: " "),
      fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12])
    else { throw BenchmarkError.unreadableProcessorTime }
    return .seconds(user + system) / sysconf(Int32(_SC_CLK_TCK))
  }

  /// Runs the service in the process that ``init(_:timelines:folder:)`` started, until a signal ends it.
  static func run(_ encodedDescription: String) async throws {
    try OpenFiles.raiseLimit()
    let description = try JSONDecoder().decode(Description.self, from: Data(encodedDescription.utf8))
    let upstream = Upstream(timelines: description.timelines)
    let address = BindAddress.hostname("127.0.0.1", port: description.port)
    switch description.kind {
    case .files: try await serve(FileStore(folder: description.folder), upstream, address)
    case .memory: try await serve(InMemoryStore(), upstream, address)
    case .usual: try await UsualService(upstream: upstream).application(address).runService()
    }
  }
}

private func serve(_ store: some KeyValueStore, _ upstream: Upstream, _ address: BindAddress) async throws {
  let repo = MomentsRepo(
    persistentDataStore: PersistentDataStore(store), getMomentsByUserIDSession: upstream,
    updateMomentLikeSession: upstream)
  try await TimelineApplication.make(repo, address: address).runService()
}

private func findFreePort() throws -> Int {
  #if canImport(Glibc)
    let type = CInt(SOCK_STREAM.rawValue)
  #else
    let type = SOCK_STREAM
  #endif
  let descriptor = socket(AF_INET, type, 0)
  guard descriptor >= 0 else { throw BenchmarkError.noFreePort }
  defer { close(descriptor) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  // 127.0.0.1
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  var size = socklen_t(MemoryLayout<sockaddr_in>.size)
  let port = withUnsafeMutablePointer(to: &address) { pointer -> Int? in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
    } ? Int(UInt16(bigEndian: pointer.pointee.sin_port)) : nil
  }
  guard let port else { throw BenchmarkError.noFreePort }
  return port
}

/// The limit on the number of open files of this process.
enum OpenFiles {
  /// Raises the limit as far as the system allows.
  static func raiseLimit() throws {
    var limits = rlimit()
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    guard getrlimit(resource, &limits) == 0 else { throw POSIXError(.EINVAL) }
    limits.rlim_cur = limits.rlim_max
    guard setrlimit(resource, &limits) == 0 else { throw POSIXError(.EPERM) }
  }
}

internal import DataStore
internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A command that removes the write permissions of a store's folder and files.
extension TestChild {
  /// Prints the results of a save and a load without write permissions, and of a save after they are restored.
  static func losePermission(in place: URL, _ store: any KeyValueStore) async throws {
    let folder = place.pathExtension.isEmpty ? place : place.deletingLastPathComponent()
    let path = folder.path(percentEncoded: false)
    // Permissions don't apply to the superuser, so the process continues as another user. Any id but 0 serves.
    if geteuid() == 0 {
      guard mkdir(path, 0o700) == 0, chown(path, 65_534, 65_534) == 0, setgid(65_534) == 0, setuid(65_534) == 0 else {
        fail("dropping superuser privileges: \(errno)")
      }
    }
    let key = StoreKey<String>("text")
    let old = try await store.save("old", for: key)
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    let files = names.map { folder.appending(path: $0).path(percentEncoded: false) }
    func setPermissions(ofFiles fileMode: mode_t, ofFolder folderMode: mode_t) {
      for file in files { chmod(file, fileMode) }
      chmod(path, folderMode)
    }
    setPermissions(ofFiles: 0o400, ofFolder: 0o500)
    // Uses another store, because an open file keeps the permissions with which it was opened.
    let secondStore = open(place)
    do throws(StoreError) {
      try await secondStore.save("new", for: key)
      say("saved")
    } catch {
      guard case .writeFailed(let cause) = error else { fail("\(error)") }
      say("refused \(cause.operation) \(cause.code)")
    }
    say(try await secondStore.load(key)?.value == old.value ? "intact" : "lost")
    setPermissions(ofFiles: 0o600, ofFolder: 0o700)
    try await open(place).save("new", for: key)
    say("saved")
  }
}

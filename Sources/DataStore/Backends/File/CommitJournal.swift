internal import Foundation

/// What a commit of several files is about to do: written before the first of them changes, so that it can be finished.
///
/// The new bytes are in staged files, which the journal names with their length and checksum. It is in force once it is
/// durable under ``fileName``; from then on the next process that opens the folder finishes the commit.
///
/// A loss of power may keep the journal's name and lose those of staged files, because neither is durable before the
/// folder is synchronised. Such a journal isn't complete: its commit was never made, and none of it was done.
struct CommitJournal: Codable, Equatable {
  /// A staged file that takes the place of another.
  struct Replacement: Codable, Equatable {
    let stagedName: String
    let fileName: String
    let size: Int
    let checksum: UInt32
  }

  static let fileName = ".DataStore-journal"
  private static let format = 1

  let format: Int
  let replacements: [Replacement]
  let removals: [String]

  init(replacements: [Replacement], removals: [String]) {
    format = Self.format
    self.replacements = replacements
    self.removals = removals
  }

  /// The bytes of the journal: a checksum in eight hexadecimal digits, then JSON.
  var encoded: Data {
    get throws(SystemError) {
      do {
        let json = try JSONEncoder.ofStore.encode(self)
        return Data(CRC32C.checksum(of: json).hexadecimalDigits.utf8) + json
      } catch {
        // File names and numbers can always be encoded.
        preconditionFailure("A journal could not be encoded: \(error)")
      }
    }
  }

  /// Decodes a journal.
  ///
  /// - Throws: Why the bytes aren't a journal that can be finished.
  static func decode(_ bytes: Data) throws(Corruption) -> CommitJournal {
    let json = bytes.dropFirst(8)
    guard bytes.prefix(8).elementsEqual(CRC32C.checksum(of: json).hexadecimalDigits.utf8) else {
      throw Corruption(reason: "the checksum is wrong: the bytes were changed or cut off")
    }
    let journal: CommitJournal
    do {
      journal = try JSONDecoder().decode(CommitJournal.self, from: json)
    } catch {
      throw Corruption(reason: String(describing: error))
    }
    guard journal.format == format else { throw Corruption(reason: "the format \(journal.format) is unknown") }
    // Nothing outside the store's own files may be touched, whatever wrote the journal.
    let isValid =
      journal.replacements.allSatisfy { StagedFile.isName($0.stagedName) && FileName.isOfStore($0.fileName) }
      && journal.removals.allSatisfy(FileName.isOfStore)
    guard isValid else { throw Corruption(reason: "it names files that aren't of a store") }
    return journal
  }

  struct Corruption: Error {
    let reason: String
  }
}

/// The names of the files that hold values and parts: `<name>.value`.
enum FileName {
  private static let fileExtension = ".value"

  static func encode(_ name: String) -> String {
    name + fileExtension
  }

  /// The name of the value that a file holds; `nil` for a file that holds none, such as one that holds a part.
  static func decode(_ fileName: String) -> String? {
    guard fileName.hasSuffix(fileExtension) else { return nil }
    let name = String(fileName.dropLast(fileExtension.count))
    return StoreKeyName(encoded: name) == nil ? nil : name
  }

  /// The name of the value, the part or the quarantined bytes that a file holds; `nil` for other files.
  static func keptName(of fileName: String) -> String? {
    if isOfStore(fileName) { return String(fileName.dropLast(fileExtension.count)) }
    return fileName.contains(StoredItem.quarantineMark) ? fileName : nil
  }

  static func isOfStore(_ fileName: String) -> Bool {
    guard fileName.hasSuffix(fileExtension) else { return false }
    let name = String(fileName.dropLast(fileExtension.count))
    return StoreKeyName(encoded: name) != nil || StorePartName.isValid(name)
  }
}

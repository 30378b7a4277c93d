internal import Foundation

/// The intended changes of a commit of several files.
///
/// A commit writes the journal before it changes the first file, so that an interrupted commit can be finished. The new
/// bytes are in staged files, which the journal names with their length and checksum. The journal is in force once it
/// is durable under ``fileName``; from then on, the next process that opens the folder finishes the commit. It first
/// makes the journal durable, because the process that wrote the journal may have ended before that.
///
/// A loss of power may preserve the journal's name and lose the names of staged files, because neither is durable
/// before the folder is synchronized. Such a journal is incomplete: its commit was not made, and none of its files has
/// changed.
struct CommitJournal: Codable, Equatable {
  /// A staged file that replaces another file.
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

  /// The bytes of the journal: a checksum of eight hexadecimal digits, followed by JSON.
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
  /// - Throws: ``Corruption``, with the reason why the bytes aren't a journal that can be finished.
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
    // A journal must name only files of the store, because a forged one could otherwise change other files.
    let isValid =
      journal.replacements.allSatisfy { StagedFile.isName($0.stagedName) && FileName.isStoreFile($0.fileName) }
      && journal.removals.allSatisfy(FileName.isStoreFile)
    guard isValid else { throw Corruption(reason: "it names files that don't belong to a store") }
    return journal
  }

  /// The reason why a journal can't be finished.
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

  /// Returns the name of the value that a file holds; `nil` for every other file, such as one that holds a part.
  static func decode(_ fileName: String) -> String? {
    guard fileName.hasSuffix(fileExtension) else { return nil }
    let name = String(fileName.dropLast(fileExtension.count))
    return StoreKeyName(encoded: name) == nil ? nil : name
  }

  /// Returns the name of the value, part or quarantined bytes that a file holds; `nil` for other files.
  static func storedName(of fileName: String) -> String? {
    if isStoreFile(fileName) { return String(fileName.dropLast(fileExtension.count)) }
    return fileName.contains(StoredItem.quarantineMark) ? fileName : nil
  }

  /// Returns whether a file holds a value or a part.
  static func isStoreFile(_ fileName: String) -> Bool {
    guard fileName.hasSuffix(fileExtension) else { return false }
    let name = String(fileName.dropLast(fileExtension.count))
    return StoreKeyName(encoded: name) != nil || StorePartName.isValid(name)
  }
}

import DataStoreTesting
import Foundation
import TestSupport
import Testing

@testable import DataStore

@Suite struct StorePlaceTests {
  private struct PlainStore: ForwardingStore {
    let base: InMemoryStore
  }

  private func areSame(_ first: some KeyValueStore, _ second: some KeyValueStore) throws -> Bool {
    try #require(StorePlace.of(first)).isSame(as: #require(StorePlace.of(second)))
  }

  @Test func `Stores over one storage have one place, also behind another store`() throws {
    let storage = InMemoryStorage()
    let store = InMemoryStore(storage: storage)
    #expect(try areSame(store, store))
    #expect(try areSame(store, InMemoryStore(storage: storage)))
    #expect(try areSame(store, PlainStore(base: InMemoryStore(storage: storage))))
    #expect(try !areSame(store, InMemoryStore()))
  }

  @Test func `Stores in one folder have one place, also through a symbolic link`() throws {
    let folder = TemporaryFolder()
    let (real, link) = (folder.url.appending(path: "real"), folder.url.appending(path: "link"))
    try FileManager.default.createDirectory(at: real, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: real)
    #expect(try areSame(FileStore(folder: real), FileStore(folder: real)))
    #expect(try areSame(FileStore(folder: real), FileStore(folder: link)))
    #expect(try !areSame(FileStore(folder: real), FileStore(folder: folder.url)))
    #expect(try !areSame(FileStore(folder: real), InMemoryStore()))
  }

  @Test func `Stores in one suite of the user defaults have one place`() throws {
    #expect(try areSame(UserDefaultsStore(suiteName: "a"), UserDefaultsStore(suiteName: "a")))
    #expect(try !areSame(UserDefaultsStore(suiteName: "a"), UserDefaultsStore(suiteName: "b")))
  }

  @Test func `A store that doesn't know its place is its own place if it is an object`() throws {
    let storage = SimulatedStorage()
    let store = SimulatedStore(storage: storage)
    #expect(try areSame(store, store))
    #expect(try !areSame(store, SimulatedStore(storage: storage)))
  }
}

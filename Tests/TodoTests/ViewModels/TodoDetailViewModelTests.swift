import Foundation
import Multicast
import Testing
import Todo

@MainActor
@Suite(.timeLimit(.minutes(15))) struct TodoDetailViewModelTests {
  @Test func `Done sends one item and finishes the stream`() async {
    let detail = TodoDetailViewModel()
    #expect(detail.title == "Add Todo")
    var todoIterator = detail.todo.makeAsyncIterator()
    detail.name = "买牛奶"
    detail.isFinished = true
    detail.done()
    let item = await todoIterator.next()
    #expect(item?.name == "买牛奶")
    #expect(item?.isFinished == true)
    #expect(await todoIterator.next() == nil)
  }

  @Test func `Cancel finishes the stream without an item`() async {
    let detail = TodoDetailViewModel()
    var todoIterator = detail.todo.makeAsyncIterator()
    detail.name = "买牛奶"
    detail.cancel()
    #expect(await todoIterator.next() == nil)
  }

  @Test func `Releasing the model finishes the stream without an item`() async {
    var detail: TodoDetailViewModel? = TodoDetailViewModel()
    var todoIterator = detail?.todo.makeAsyncIterator()
    detail = nil
    #expect(await todoIterator?.next() == nil)
  }

  @Test func `An empty name disables Done`() async {
    let detail = TodoDetailViewModel()
    var todoIterator = detail.todo.makeAsyncIterator()
    #expect(!detail.isDoneEnabled)
    detail.done()
    detail.name = "买牛奶"
    #expect(detail.isDoneEnabled)
    detail.done()
    #expect(await todoIterator.next()?.name == "买牛奶")
    #expect(await todoIterator.next() == nil)
  }

  @Test func `Nothing is sent after the stream has finished`() async {
    let detail = TodoDetailViewModel(editing: TodoItem(name: "买牛奶"))
    var todoIterator = detail.todo.makeAsyncIterator()
    detail.cancel()
    detail.done()
    #expect(await todoIterator.next() == nil)
  }

  @Test func `An edit starts with the values of its item, and keeps the item's id`() async {
    let item = TodoItem(name: "买牛奶", isFinished: true)
    let detail = TodoDetailViewModel(editing: item)
    #expect(detail.title == "Edit todo")
    #expect(detail.name == "买牛奶")
    #expect(detail.isFinished)
    var todoIterator = detail.todo.makeAsyncIterator()
    detail.name = "买牛奶和面包"
    detail.done()
    #expect(await todoIterator.next() == TodoItem(id: item.id, name: "买牛奶和面包", isFinished: true))
  }

  @Test func `A late subscriber receives only the completion, because nothing is replayed`() async {
    let detail = TodoDetailViewModel(editing: TodoItem(name: "买牛奶"))
    var earlySubscriber = detail.todo.makeAsyncIterator()
    detail.done()
    var lateSubscriber = detail.todo.makeAsyncIterator()
    #expect(await lateSubscriber.next() == nil)
    #expect(await earlySubscriber.next()?.name == "买牛奶")
  }

  @Test func `Subscribers have a stream and can't send`() {
    // `detail.todo.send(item)`, `detail.todo.finish()` and `detail.todoChannel` don't compile, because a stream has
    // neither method and the channel is private.
    let detail = TodoDetailViewModel()
    let stream: Any = detail.todo
    #expect(stream is MulticastStream<TodoItem, Never>)
    #expect(!(stream is MulticastChannel<TodoItem, Never>))
    #expect(!(stream is MulticastRelay<TodoItem>))
  }
}

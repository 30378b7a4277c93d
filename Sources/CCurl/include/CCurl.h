// The part of libcurl's interface that CurlTransport uses, found at run time in the library that Foundation is linked
// with. So neither libcurl's headers nor a linker flag are needed to build this package.
//
// Names and numbers are those of libcurl's curl.h and multi.h, whose binary interface has been the same since version
// 7.16 (2006): https://curl.se/libcurl/abi.html

#ifndef CCURL_H
#define CCURL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct CCurlEasy CCurlEasy;
typedef struct CCurlMulti CCurlMulti;
typedef struct CCurlList CCurlList;

typedef size_t (*CCurlDataCallback)(char *_Nonnull bytes, size_t size, size_t count, void *_Nullable context);

/// Finds and initializes libcurl 7.68 or newer.
///
/// Call it once before anything else here; nothing else may be called where it returns false.
bool CCurlOpen(void);

/// What libcurl is called in its own words, such as `7.88.1`.
const char *_Nonnull CCurlVersion(void);

CCurlEasy *_Nullable CCurlEasyMake(void);
void CCurlEasyFree(CCurlEasy *_Nonnull easy);

/// Sets the options that are the same for all requests: no signals, http and https only, and every compression that
/// libcurl knows. Redirections are not followed, as libcurl does by itself.
void CCurlEasySetDefaults(CCurlEasy *_Nonnull easy);
/// Has the request sent once.
///
/// libcurl by itself sends a request again, over a new connection, where a connection that was used before is closed
/// without a byte of a response. The server may have acted on the first one.
///
/// `count` is how often the request was begun to be sent; it is used until the transfer ends.
void CCurlEasySendOnce(CCurlEasy *_Nonnull easy, int *_Nonnull count);
/// How long to try to connect at most.
void CCurlEasySetConnectTimeout(CCurlEasy *_Nonnull easy, long milliseconds);
/// `url`, `method`, `body` and `fields` are used until the transfer ends, but for `url` and `method`, which are copied.
bool CCurlEasySetRequest(
    CCurlEasy *_Nonnull easy, const char *_Nonnull url, const char *_Nonnull method, const void *_Nullable body,
    long long bodyLength, CCurlList *_Nullable fields);
void CCurlEasySetCallbacks(
    CCurlEasy *_Nonnull easy, CCurlDataCallback _Nonnull header, CCurlDataCallback _Nonnull body,
    void *_Nullable context);
/// `buffer` has `CCurlErrorSize` bytes and is used until the handle is freed.
void CCurlEasySetErrorBuffer(CCurlEasy *_Nonnull easy, char *_Nonnull buffer);
enum { CCurlErrorSize = 256 };
/// The status of the response whose head arrived last; 0 where none did.
long CCurlEasyStatus(CCurlEasy *_Nonnull easy);

/// Appends a copy of `field` and returns the list, or null where there is no memory.
CCurlList *_Nullable CCurlListAppend(CCurlList *_Nullable list, const char *_Nonnull field);
void CCurlListFree(CCurlList *_Nullable list);

CCurlMulti *_Nullable CCurlMultiMake(void);
void CCurlMultiFree(CCurlMulti *_Nonnull multi);
bool CCurlMultiAdd(CCurlMulti *_Nonnull multi, CCurlEasy *_Nonnull easy);
void CCurlMultiRemove(CCurlMulti *_Nonnull multi, CCurlEasy *_Nonnull easy);
/// Does what can be done without waiting; calls the callbacks. Returns libcurl's code, which is 0 where all is well.
int CCurlMultiPerform(CCurlMulti *_Nonnull multi);
/// Waits until there is something to do, for `CCurlMultiWake`, or for `milliseconds`.
int CCurlMultiWait(CCurlMulti *_Nonnull multi, int milliseconds);
/// Ends a wait, or the next one. The only function that may be called while another thread uses the handle.
void CCurlMultiWake(CCurlMulti *_Nonnull multi);
/// Returns whether a transfer has ended, and sets `result` to its code, which is 0 where it is complete.
bool CCurlMultiTakeResult(CCurlMulti *_Nonnull multi, int *_Nonnull result);

#endif

package core

// A Recording says how much of its exchange an attempt keeps. Its values are the words of
// delivery.record.
type Recording string

// The recordings. Each keeps all parts that the recording before it keeps.
const (
	RecordNone    Recording = "none"    // no exchange
	RecordHeaders Recording = "headers" // method, URL, headers of both sides, size and SHA-256 of the body
	RecordAll     Recording = "all"     // the body as well, if it is not the payload of the event
)

// Bounds of a recorded exchange, in bytes.
const (
	MaxSentURL     = 2 << 10
	MaxHeaderValue = 1 << 10  // one value
	MaxHeaders     = 4 << 10  // names and values of a request, and of a reply, each
	MaxSentBody    = 64 << 10 // the kept part of a body
)

// Masked replaces a secret in a recorded exchange.
const Masked = "***"

// UnmaskedURL stands for the URL in [Exchange.Unmasked]. It is not the name of a header.
const UnmaskedURL = "<url>"

// An Exchange is the request that an attempt sent and the headers of its reply. An attempt keeps it
// if the configuration says so. It contains no secret of the configuration: see Masked. Times and
// the reply's status and body are in the [Attempt].
type Exchange struct {
	// Method is the method of HTTP, or the path of a gRPC method.
	Method string

	// URL has Masked in place of the values of its query. Of a URL that is a secret only the host
	// is kept. It has at most MaxSentURL bytes.
	URL string

	// Headers of the request and of its reply, by name. Several values of a name are joined by
	// ", ". ReplyHeaders is nil if there was no reply. Over gRPC they are the metadata of the
	// call with the attributes in its message, and the headers and trailers of the reply.
	Headers, ReplyHeaders map[string]string

	// Cut says that a value is longer than MaxHeaderValue, that headers beyond MaxHeaders are left
	// out, or that the URL is longer than MaxSentURL.
	Cut bool

	// Unmasked are the names of the headers of the request in whose values Masked is a text that was
	// sent, with [UnmaskedURL] for the URL's path and the names in its query. Nothing is masked there.
	Unmasked []string

	// BodySize and BodySHA256 are of the body as it was sent, in bytes and in hexadecimal. Over
	// gRPC the body is the payload in the message. A request without a body has 0 and "".
	BodySize   int
	BodySHA256 string

	// KeptBody is how many bytes of the body are kept, from its beginning, up to MaxSentBody. 0
	// means none. They are valid UTF-8 without NUL bytes. An attempt that is to be stored has
	// them in Body. An attempt that was read has none there: see [Archive.SentBody].
	KeptBody int
	Body     string
}

// CutBody reports whether only the beginning of the body is kept.
func (x *Exchange) CutBody() bool { return x.KeptBody > 0 && x.KeptBody < x.BodySize }

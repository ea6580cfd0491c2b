package web

import (
	"net/http"
	"strings"
)

// errCrossSite tells the author of a page what its visitors' browsers cannot send.
var errCrossSite = &verdict{status: http.StatusForbidden, text: "Requests that a browser makes for a page of another origin are refused; send this from a program"}

// elsewhere knows the requests that browsers say they make for pages of another origin:
// by Sec-Fetch-Site, else by an Origin that is not the host asked for. No other program
// sends either. Methods that only look pass.
var elsewhere http.CrossOriginProtection

// crossSite reports whether a page of another origin made a browser send a request that
// changes something. The browser may be inside of this network or on this machine.
// Callbacks are not asked: their token is all the proof there is, and no page knows it.
func crossSite(r *http.Request) bool {
	if takesMessages(r) {
		site := r.Header.Get("Sec-Fetch-Site")
		return site != "" && site != "same-origin" && site != "none"
	}
	return elsewhere.Check(r) != nil && !callingBack(r)
}

// takesMessages reports whether a request is for messages of a queue, which a GET hides
// from other consumers.
func takesMessages(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/queues/") && strings.HasSuffix(r.URL.Path, "/messages")
}

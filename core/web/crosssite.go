package web

import (
	"net/http"
	"strings"
)

// errCrossSite explains to the author of a page which requests of browsers the gateway
// refuses.
var errCrossSite = &verdict{status: http.StatusForbidden, text: "Requests that a browser makes for a page of another origin are refused; send this from a program"}

// elsewhere recognizes requests that a browser makes for a page of another origin: by
// Sec-Fetch-Site, else by an Origin that differs from the requested host. Other programs send
// neither header. Methods that only read pass.
var elsewhere http.CrossOriginProtection

// crossSite reports whether a page of another origin made a browser send a request that
// changes something. The browser may be inside of this network or on this machine.
// Callbacks pass without this check: their token is their only proof, and no page knows it.
func crossSite(r *http.Request) bool {
	// The protection of net/http lets every GET pass. This one changes the queue, so it is checked
	// by the header that all current browsers send.
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

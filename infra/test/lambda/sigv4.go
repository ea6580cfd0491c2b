//go:build linux

package lambda

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// verify checks the Signature Version 4 of a request to the Invoke API by
// docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html: with the
// credentials of copies, for the region and the service.
func verify(r *http.Request, body []byte) error {
	scope, names, signature, err := authorization(r.Header.Get("Authorization"))
	if err != nil {
		return err
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 5*time.Minute {
		return errors.New("x-amz-date is missing, or too far from now")
	}
	if r.Header.Get("X-Amz-Security-Token") != Session {
		return errors.New("x-amz-security-token is not that of the credentials")
	}
	for _, must := range []string{"host", "x-amz-date", "x-amz-security-token"} {
		if !slices.Contains(names, must) {
			return fmt.Errorf("%s is not signed", must)
		}
	}
	day := at.Format("20060102")
	if want := AccessKey + "/" + day + "/" + Region + "/lambda/aws4_request"; scope != want {
		return fmt.Errorf("credential %q, want %q", scope, want)
	}
	key := []byte("AWS4" + SecretKey)
	for _, part := range []string{day, Region, "lambda", "aws4_request"} {
		key = sign(key, part)
	}
	_, terms, _ := strings.Cut(scope, "/")
	text := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + terms + "\n" + digest([]byte(canonical(r, names, body)))
	if want := hex.EncodeToString(sign(key, text)); signature != want {
		return errors.New("the signature does not match")
	}
	return nil
}

func authorization(header string) (scope string, names []string, signature string, err error) {
	rest, ok := strings.CutPrefix(header, "AWS4-HMAC-SHA256 ")
	if !ok {
		return "", nil, "", errors.New("authorization is not AWS4-HMAC-SHA256")
	}
	for part := range strings.SplitSeq(rest, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "Credential":
			scope = value
		case "SignedHeaders":
			names = strings.Split(value, ";")
		case "Signature":
			signature = value
		}
	}
	return scope, names, signature, nil
}

// canonical returns the canonical request. Escapes of the path are escaped once more, as for
// all services except S3.
func canonical(r *http.Request, names []string, body []byte) string {
	segments := strings.Split(r.URL.EscapedPath(), "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	}
	var headers strings.Builder
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(len(body))
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	return strings.Join([]string{
		r.Method, strings.Join(segments, "/"), strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20"),
		headers.String(), strings.Join(names, ";"), digest(body),
	}, "\n")
}

func sign(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Sending an event from the page.
import { html, useContext, useRef, useState } from './lib.js';
import { Failure, send } from './api.js';
import { go } from './place.js';
import { Me, Problem, tell } from './ui.js';

// suggestion returns a type of event that a consumer of a source wants.
function suggestion(topology, source) {
  const wanted = topology.consumers.filter((c) => c.source === source).flatMap((c) => c.events);
  return (wanted.find((e) => !e.includes('*')) || wanted[0] || 'hello.world').replaceAll('*', 'created');
}

// Send is a button that asks for an event, sends it as a program does, and opens its page. It is there
// for a session that may send, where a source takes the events of programs. source is chosen at first.
export function Send({ topology, source, primary }) {
  const me = useContext(Me);
  const dialog = useRef(), payload = useRef();
  const [state, put] = useState({});
  const sources = (topology?.sources || []).filter((s) => s.type === 'event').map((s) => s.name);
  if (!me.sends || !sources.length) return null;
  const chosen = state.source ?? (sources.includes(source) ? source : sources[0]);
  const type = state.type ?? suggestion(topology, chosen);
  const submit = async (e) => {
    e.preventDefault();
    put((s) => ({ ...s, busy: true, error: null }));
    try {
      try {
        JSON.parse(payload.current.value);
      } catch (error) {
        throw new Failure(0, `The payload is not JSON: ${error.message}.`);
      }
      const r = await send(chosen, type.trim(), payload.current.value);
      dialog.current.close();
      put({});
      tell(r.duplicate ? 'The gateway has this event already.' : 'The event is accepted.');
      go(['events', r.event_id]);
    } catch (error) {
      put((s) => ({ ...s, busy: false, error }));
    }
  };
  return html`<button type="button" class=${primary ? 'primary' : ''} onClick=${() => dialog.current.showModal()}>Send an event</button>
    <dialog ref=${dialog} aria-label="Send an event">
      <h2>Send an event</h2>
      <form onSubmit=${submit}>
        <label>Source<select name="source" onChange=${(e) => put((s) => ({ ...s, source: e.target.value }))}>${sources.map((s) => html`<option value=${s} selected=${s === chosen}>${s}</option>`)}</select></label>
        <label>Type<input name="type" required maxlength="200" autocomplete="off" spellcheck="false" value=${type} onInput=${(e) => put((s) => ({ ...s, type: e.target.value }))} /></label>
        <label>Payload<textarea ref=${payload} name="payload" rows="6" spellcheck="false" defaultValue=${'{"total": 42}'}></textarea></label>
        <${Problem} error=${state.error} />
        <div class="actions">
          <button type="button" onClick=${() => dialog.current.close()}>Leave it</button>
          <button class="primary" disabled=${state.busy}>Send</button>
        </div>
      </form>
    </dialog>`;
}

// Sends requests to the page's server; the document has the server's command and token.

async function ask(method, path, body) {
  const { token, command } = document.body.dataset;
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: { "X-Judge-Token": token, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw Object.assign(new Error(`the server does not answer: is \`${command}\` still running?`), { gone: true });
  }
  const found = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(found.error), { hint: found.hint });
  return found;
}

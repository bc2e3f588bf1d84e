// Validates the OpenAPI document, makes a client of it, and calls the server with that. Arguments: the document, the URL.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { Validator } from '@seriousme/openapi-schema-validator';
import { OpenAPIClientAxios } from 'openapi-client-axios';

const [file, url] = process.argv.slice(2);
const document = JSON.parse(await readFile(file, 'utf8'));

const validator = new Validator();
const { valid, errors } = await validator.validate(structuredClone(document));
assert.ok(valid, JSON.stringify(errors, null, 1));
assert.equal(validator.version, '3.1');

const api = new OpenAPIClientAxios({
    definition: document,
    withServer: { url },
    axiosConfigDefaults: { headers: { Authorization: `Bearer ${process.env.TOKEN}` }, proxy: false, validateStatus: () => true },
});
const client = await api.init();
let called = 0;
const call = async (operation, status, parameters, body) => {
    const answer = await client[operation](parameters, body);
    assert.equal(answer.status, status, `${operation}: ${JSON.stringify(answer.data)}`);
    called += 1;
    return answer.data;
};

const made = await call('postJobs', 201, {}, { id: 'made', command: 'true', delay: '1h', tags: ['client'] });
assert.equal(made.id, 'made');
const jobs = await call('getJobs', 200, { tag: 'client', limit: 5 });
assert.deepEqual(jobs.map((job) => job.id), ['made']);
assert.equal((await call('getJobsById', 200, { id: 'made' })).state, 'pending');
assert.equal((await call('patchJobsById', 200, { id: 'made' }, { priority: 7 })).priority, 7);
await call('postJobsByIdCancel', 200, { id: 'made' });
assert.equal((await call('postJobsByIdRetry', 200, { id: 'made' })).state, 'pending');
const preview = await call('postActions', 200, {}, { verb: 'retry', filter: { state: 'dead' }, dry_run: true });
assert.equal(preview.exact, true);
assert.equal((await call('getQueuesByQueue', 200, { queue: 'mail' })).paused, true);
assert.ok((await call('getHistory', 200, { range: '15m' })).points);
assert.equal((await call('getConfigByKey', 200, { key: 'lease' })).key, 'lease');
assert.equal((await call('getStatus', 200, {})).jobs.dead >= 1, true);
assert.equal((await call('getJobsById', 404, { id: 'nope' })).type, '/problems/not_found');
console.log(`called ${called} operations`);
